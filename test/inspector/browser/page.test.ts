/** The page in a real browser, against a real server with real clients: what it shows is what is. */
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { handleOf, type Stage, stage, tool } from './stage.ts';
import { activeOf, choose, open, short, takenOf } from './visit.ts';

fullOnly('opens many pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the page');
const browsing = new Browsing();
let shop: Stage;

test.before(async () => {
  shop = await stage({ chatter: false });
});
test.after(async () => {
  await browsing.close();
  await shop.close();
});

test('the token leaves the address bar at once', async () => {
  const page = await open(browsing, shop);
  assert.is(new URL(page.url()).hash, '');
  assert.not.match(page.url(), new RegExp(new URL(shop.url).hash.slice(1)));
  await page.close();
});

test('the engine for charts starts before anybody looks at one', async () => {
  const page = await browsing.page({ ahead: true });
  const engine = page.waitForEvent('worker');
  await page.goto(shop.url);
  await engine;
  await sees(() => page.locator('#tab-overview').getAttribute('aria-selected'), 'true');
  await page.close();
});

test('active states are those of the actor, and the edge just taken is marked', async () => {
  const page = await open(browsing, shop, { motion: true });
  const { claude } = shop.clients;
  assert.ok(claude);
  const handle = await handleOf(claude, 'Barbara');
  await choose(page, short(handle));
  await page.waitForSelector('.picture .state.active');
  await sees(() => activeOf(page), ['cart']);
  await tool(claude, 'order_add_item', { handle, sku: 'tea' });
  await page.waitForSelector('.picture .taken');
  await sees(() => takenOf(page), ['cart#0']);
  await tool(claude, 'order_cancel', { handle });
  await page.waitForSelector('.picture .state.active[data-path="cancelled"]');
  const state = Object(await tool(claude, 'order_get', { handle })).structuredContent;
  await sees(() => activeOf(page), [String(Object(state).state)]);
  await sees(() => takenOf(page), ['cart#2']);
  await page.close();
});

test('the detail leads with what is waited for, for whom, until when and why', async () => {
  const page = await open(browsing, shop);
  const { claude } = shop.clients;
  assert.ok(claude);
  const handle = await handleOf(claude, 'Katherine');
  await tool(claude, 'order_add_item', { handle, sku: 'cup' });
  const checkout = tool(claude, 'order_checkout', { handle });
  const question = Object(await claude.next((message) => Object(message).method === 'elicitation/create'));
  await choose(page, short(handle));
  await page.waitForSelector('.waits .because');
  const sentence = page.locator('.waits > li').first();
  await shows(
    sentence,
    /Waits for an answer to “Charge Katherine 9\?” from the user of claude-code 2\.1\.4, until (?:\w{3} \d+(?:, \d+)? )?\d\d:\d\d:\d\d/,
  );
  await shows(sentence, /cause: elicitation\/create .*, started by tools\/call order_checkout/s);
  await shows(page.locator('.waits > li').nth(1), /Timer after patience fires → cancelled/);
  claude.raw(JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { action: 'decline' } }));
  await checkout;
  await page.waitForSelector('.picture .state.active[data-path="cart"]');
  await page.close();
});

test('a page that comes late shows the tree, as it is', async () => {
  const page = await open(browsing, shop);
  for (const name of ['server', 'claude-code 2.1.4', 'cursor 1.9.0', `order ${short(shop.orders.Ada)}`])
    await page
      .locator('.node-name')
      .and(page.getByText(name, { exact: true }))
      .waitFor();
  await page.close();
});

test('the cursor shows the state of an earlier time, and leaves the server alone', async () => {
  const page = await open(browsing, shop);
  const { claude } = shop.clients;
  assert.ok(claude);
  const handle = await handleOf(claude, 'Radia');
  await choose(page, short(handle));
  await page.waitForSelector('.picture .state.active[data-path="cart"]');
  await tool(claude, 'order_cancel', { handle });
  await page.waitForSelector('.picture .state.active[data-path="cancelled"]');
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  for (let steps = 0; steps < 60 && (await activeOf(page))[0] !== 'cart'; steps += 1) await page.keyboard.press(',');
  await shows(page.locator('.status').first(), /^at\s+\d\d:/);
  await shows(page.locator('.detail .state-word'), /cart/);
  const state = Object(await tool(claude, 'order_get', { handle })).structuredContent;
  assert.is(Object(state).state, 'cancelled');
  await page.keyboard.press('l');
  await page.waitForSelector('.picture .state.active[data-path="cancelled"]');
  assert.equal(
    // The page loads its later parts when it is idle.
    requests.filter((url) => !url.endsWith('/api/focus') && !url.includes('/assets/')),
    [],
    'only what is looked at was told',
  );
  await page.close();
});

test('a request and its answer are one row, and notifications stand under it', async () => {
  const page = await open(browsing, shop);
  const { cursor } = shop.clients;
  assert.ok(cursor);
  await page.click('#tab-wire');
  const counting = tool(cursor, 'count_stock', {}, { progressToken: 'shelves' });
  counting.catch(() => {});
  const row = page.locator('.wire-row', { hasText: 'count_stock' }).last();
  await row.waitFor();
  await shows(row, /open/);
  await row.locator('.notices').click();
  await page.locator('.wire-row.notice', { hasText: 'notifications/progress' }).first().waitFor();
  await page.fill('#filter', 'type:tools/call order_create');
  const rows = page.locator('.wire-row', { hasText: 'order_create' });
  await page.locator('.wire-row', { hasText: 'count_stock' }).first().waitFor({ state: 'detached' });
  const before = await rows.count();
  const handle = await handleOf(cursor, 'Hedy');
  const made = rows.nth(before);
  await made.waitFor();
  await made.click();
  await shows(made, /ms[\s\S]*ok/);
  await page.locator('.detail', { hasText: handle }).waitFor();
  await shows(page.locator('.detail'), /served by/);
  await page.close();
});

test('no page has written an error to its console', () => {
  assert.equal(browsing.complaints, []);
});
