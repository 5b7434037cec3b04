/** What a reader may do: suppose an event, act on a server that allows it, compare two moments, open a recording, filter, walk with the keys. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, counts, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { elapse, until } from '../../harness/wait.ts';
import { handleOf, type Stage, stage, tool } from './stage.ts';
import { activeOf, choose, open, short } from './visit.ts';

fullOnly('opens many pages; the quick test of the page is overview.test.ts');

const test = browserSuite('actions of a reader');
const browsing = new Browsing();
let shop: Stage;
let governed: Stage;

test.before(async () => {
  shop = await stage({ chatter: false });
  governed = await stage({ chatter: false, control: true });
});
test.after(async () => {
  await browsing.close();
  await shop.close();
  await governed.close();
});

test('an event is tried beside the actor, which does not notice, with the reason for a rejection', async () => {
  const page = await open(browsing, shop);
  const { claude } = shop.clients;
  assert.ok(claude);
  const handle = await handleOf(claude, 'Rosalind');
  await choose(page, short(handle));
  await page.waitForSelector('.suppose');
  await page.fill('.suppose input', 'checkout');
  await page.getByRole('button', { name: 'Try', exact: true }).click();
  const said = page.locator('.supposed');
  await shows(said, /Not possible:.*filled/s);
  await page.fill('.suppose input', 'cancel');
  await page.getByRole('button', { name: 'Try', exact: true }).click();
  await page.locator('.supposed', { hasText: 'cancelled' }).waitFor();
  await shows(said, /cancel would lead to cancelled/);
  await page.locator('.picture .look[data-path="cancelled"]').waitFor();
  await sees(() => activeOf(page), ['cart']);
  const view = Object(await tool(claude, 'order_get', { handle })).structuredContent;
  assert.is(Object(view).state, 'cart');
  await counts(page.getByRole('button', { name: 'Send', exact: true }), 0, 'this server only shows');
  await page.close();
});

test('a server that was started with control takes an event, a call, and the end of a session', async () => {
  const page = await open(browsing, governed);
  const { claude } = governed.clients;
  assert.ok(claude);
  const handle = await handleOf(claude, 'Sophie');
  await choose(page, short(handle));
  await page.fill('.suppose input', 'add_item');
  await page.fill('.suppose textarea', '{"sku": "tea", "quantity": 3}');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.waitForSelector('.picture .taken[data-edge="cart#0"]');
  const view = Object(await tool(claude, 'order_get', { handle })).structuredContent;
  assert.match(JSON.stringify(view), /"sku":"tea","quantity":3/);

  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Call a tool' }).click();
  await page.fill('.offer-search', 'order_create');
  await page.locator('.offer-row', { hasText: 'order_create' }).click();
  await page.locator('.use-form textarea').first().fill('Lise');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.locator('.call.ok', { hasText: 'handle' }).waitFor();
  await page.getByRole('button', { name: 'wire', exact: true }).click();
  await page.locator('.wire-row[aria-selected="true"]', { hasText: 'order_create' }).waitFor();

  await choose(page, 'cursor 1.9.0');
  await page.getByText('Close the session').click();
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  await page.locator('.node.session.gone', { hasText: 'cursor' }).waitFor();
  await page.close();
});

test('two moments are compared: what changed between them, and how', async () => {
  const page = await open(browsing, shop);
  const { claude } = shop.clients;
  assert.ok(claude);
  const handle = await handleOf(claude, 'Emmy');
  await choose(page, short(handle));
  await page.waitForSelector('.picture .state.active[data-path="cart"]');
  await page.keyboard.press('m');
  await page.locator('.compare').waitFor();
  await tool(claude, 'order_add_item', { handle, sku: 'kettle' });
  await tool(claude, 'order_cancel', { handle });
  await page.locator('.compare li', { hasText: short(handle) }).waitFor();
  await page.locator('.compare', { hasText: /cart → (cancelled|done)/ }).waitFor();
  await page.keyboard.press('m');
  await page.locator('.compare').waitFor({ state: 'detached' });
  await page.close();
});

test('a recording is opened from a file, and the server is one click away', async () => {
  const page = await open(browsing, shop);
  await page.click('summary[aria-label="Export and import"]');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByText('Export as JSON').click()]);
  const file = joinPath(tmpdir(), `troupe-recording-${process.pid}.json`);
  await download.saveAs(file);
  const names = await page.locator('.node-name').allInnerTexts();
  await page.setInputFiles('input[type="file"]', file);
  await page.waitForSelector('.status.recording');
  await sees(() => page.locator('.node-name').allInnerTexts(), names);
  await page.getByText('back to the server').click();
  await page.waitForSelector('.status.live');
  writeFileSync(file, '{"format":"something else"}');
  await page.setInputFiles('input[type="file"]', file);
  await page.locator('.notice', { hasText: 'it is not a recording of troupe' }).waitFor();
  await page.close();
});

test('a part of the timeline that is marked filters the wire, and a drag moves the cursor', async () => {
  const page = await open(browsing, shop);
  const { claude } = shop.clients;
  assert.ok(claude);
  await page.click('#tab-wire');
  for (let call = 0; call < 6; call += 1) {
    await claude.send('tools/list');
    await elapse(150, 'the calls stand apart on the strip');
  }
  await page.locator('.wire-row', { hasText: 'tools/list' }).nth(5).waitFor();
  const all = await page.locator('.wire-row').count();
  const strip = await page.locator('.strip canvas').boundingBox();
  if (strip === null) throw new Error('the strip is not shown');
  const [y, from, to] = [strip.y + strip.height / 2, strip.x + strip.width * 0.3, strip.x + strip.width * 0.6];
  await page.keyboard.down('Shift');
  await page.mouse.move(from, y);
  await page.mouse.down();
  await page.mouse.move(to, y, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await page.locator('.filter .chip').waitFor();
  await until(async () => (await page.locator('.wire-row').count()) < all, 'fewer rows than before');
  await page.locator('.filter .chip').click();
  await page.mouse.move(from, y);
  await page.mouse.down();
  await page.mouse.move(from - 20, y, { steps: 3 });
  await page.mouse.up();
  await page.locator('.status.paused').waitFor();
  await page.locator('.status.paused').click();
  await page.waitForSelector('.status.live');
  await page.close();
});

test('the keys reach everything: filter, tree, tabs, help, theme', async () => {
  const page = await open(browsing, shop);
  await page.keyboard.press('/');
  await page.keyboard.type('actor:claude');
  await page.locator('.node', { hasText: 'cursor 1.9.0' }).waitFor({ state: 'detached' });
  await page.fill('#filter', '');
  await page.keyboard.press('Escape');
  await page.keyboard.press('a');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await shows(page.locator('.node[aria-selected="true"]'), /claude-code/);
  await shows(page.locator('.detail h2').first(), /claude-code/);
  await page.keyboard.press('ArrowLeft');
  await shows(page.locator('.node[aria-selected="true"]'), /clients/);
  await page.keyboard.press('ArrowLeft');
  await sees(() => page.locator('.node[aria-selected="true"]').getAttribute('aria-expanded'), 'false');
  await page.keyboard.press('4');
  await sees(() => page.locator('#tab-wire').getAttribute('aria-selected'), 'true');
  await page.keyboard.press('?');
  await page.locator('dialog.help[open]').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('dialog.help').waitFor({ state: 'detached' });
  const theme = await page.locator('html').getAttribute('data-theme');
  await page.keyboard.press('t');
  await until(
    async () => (await page.locator('html').getAttribute('data-theme')) !== theme,
    `a theme other than ${theme}`,
  );
  await page.close();
});

test('no page has written an error to its console', () => {
  assert.equal(browsing.complaints, []);
});
