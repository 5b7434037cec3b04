/** The view of everything that a server offers: found, read, exported, and harmless whatever its names contain. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import type { Page } from 'playwright-core';
import { createServer, socket } from 'troupe';
import { openInspector } from 'troupe/inspector';
import * as assert from 'uvu/assert';
import everything from '../../../examples/everything/server.ts';
import { Browsing, browserSuite, counts, type Look, lacks, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';

fullOnly('opens many pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the view of the server');
const browsing = new Browsing();
let url = '';
let governed = '';
let closeAll: () => Promise<void>;

test.before(async () => {
  const inspector = await openInspector(everything);
  url = inspector.url;
  governed = (await openInspector(everything, { control: true })).url;
  closeAll = () => everything.close();
});
test.after(async () => {
  await browsing.close();
  await closeAll();
});

async function openServer(address = url, look: Look = {}): Promise<Page> {
  const page = await browsing.page(look);
  await page.goto(address);
  await page.waitForSelector('.status.live');
  await page.click('#tab-server');
  await page.waitForSelector('.offer-page');
  return page;
}

async function find(page: Page, name: string): Promise<void> {
  await page.fill('.offer-search', name);
  await page.locator('.offer-row').first().click();
  await page.locator('.offer-name', { hasText: name }).waitFor();
}

test('shows the server, and each element with its schema, hints, and the JSON on demand', async () => {
  const page = await openServer();
  const about = page.locator('.offer-page');
  await shows(
    about,
    /Everything[\s\S]*Tools[\s\S]*echo\s+Returns[\s\S]*Call any tool[\s\S]*listChanged[\s\S]*2026-07-28[\s\S]*\d+ limits/,
  );
  // What a reader seldom asks for is closed.
  await lacks(about, 'maxInFlight');
  await counts(page.locator('.offer-page img.offer-icon'), 1);
  await page.locator('.limits-of > summary').click();
  await page.locator('.limits', { hasText: 'maxInFlight' }).waitFor();
  await page.locator('.offered .link', { hasText: 'list_primes' }).click();
  await page.locator('.offer-name', { hasText: 'list_primes' }).waitFor();
  await find(page, 'json_schema_2020_12_tool');
  await shows(
    page.locator('.schema').first(),
    /address\s+object[\s\S]*street\s+string[\s\S]*phone\s+email[\s\S]*requires phone/,
  );
  await page.getByText('Show the JSON Schema').click();
  await page.locator('.json', { hasText: '$schema' }).waitFor();
  await find(page, 'add');
  await shows(
    page.locator('.offer-page'),
    /read-only[\s\S]*idempotent[\s\S]*closed world[\s\S]*sum\s+number\s+required/,
  );
  await find(page, 'test://cities/{country}/{city}');
  await shows(page.locator('.offer-page'), /country[\s\S]*the server suggests values/);
  assert.equal(browsing.complaints, []);
  await page.close();
});

test('the keys reach the list, the element, and the JSON', async () => {
  const page = await openServer();
  await page.focus('.offer-list .list');
  await page.keyboard.press('Home');
  for (let row = 0; row < 3; row += 1) await page.keyboard.press('ArrowDown');
  await page.locator('.offer-name', { hasText: 'echo' }).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.locator('.offer-name:focus').waitFor();
  await page.close();
});

test('an exported recording shows it, and says so if it contains none', async () => {
  const page = await openServer();
  await page.click('summary[aria-label="Export and import"]');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByText('Export as one HTML file').click(),
  ]);
  const file = joinPath(tmpdir(), `troupe-offers-${process.pid}`);
  await download.saveAs(`${file}.html`);
  const exported = await browsing.page();
  await exported.goto(`file://${file}.html`);
  await exported.click('#tab-server');
  await find(exported, 'resource_link');
  await shows(exported.locator('.offer-page'), /Returns a pointer to a resource/);
  await exported.close();
  const hello = {
    type: 'hello',
    format: 1,
    server: { name: 'old', version: '1' },
    troupe: '0',
    pid: 1,
    epoch: 0,
    now: 0,
  };
  writeFileSync(`${file}.json`, JSON.stringify({ format: 'troupe-recording', version: 1, frames: [hello] }));
  await page.setInputFiles('input[type="file"]', `${file}.json`);
  await page.locator('.none', { hasText: 'does not contain what the server offers' }).waitFor();
  await page.close();
});

test('a thousand tools, a schema that contains itself, and markup in names are shown as text', async () => {
  const server = createServer({ name: 'hostile', version: '1.0.0' });
  const markup = '<img src=x onerror="document.title=1">';
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } as const;
  server.tool(
    'hostile',
    {
      title: markup,
      description: `${markup}\n</script>`,
      icons: [{ src: 'https://example.com/icon.png' }],
      input: {
        type: 'object',
        $defs: { node },
        properties: {
          [markup]: { $ref: '#/$defs/node' },
        },
      },
    },
    () => 'x',
  );
  for (let at = 0; at < 1_000; at += 1) server.tool(`tool_${at}`, { description: `Number ${at}` }, () => 'x');
  const { url: address } = await openInspector(server);
  const page = await openServer(address);
  await until(async () => (await page.locator('.offer-row').count()) < 100, 'the rows in view only');
  await find(page, 'tool_999');
  await find(page, 'hostile');
  await sees(() => page.locator('.offer-page h2').innerText(), markup);
  await counts(page.locator('.offer-page img'), 0);
  await shows(page.locator('.schema'), /contains itself/);
  for (let level = 0; level < 4; level += 1) await page.locator('.schema-twist[aria-expanded="false"]').first().click();
  await counts(page.locator('.schema-name', { hasText: 'next' }), 5);
  await page.close();
  await server.close();
  assert.equal(browsing.complaints, []);
});

async function call(page: Page, name: string, verb = 'Call'): Promise<void> {
  await find(page, name);
  await page.locator('.use').getByRole('button', { name: verb, exact: true }).click();
}

const result = (page: Page, text: string) => page.locator('.call', { hasText: text }).waitFor();

test('S-52 a page without control shows no button, and says which option brings them', async () => {
  const page = await openServer();
  await find(page, 'echo');
  await counts(page.getByRole('button', { name: 'Call', exact: true }), 0);
  await page.locator('.note', { hasText: '--inspect-control' }).waitFor();
  await page.close();
});

test('calls tools, and shows texts, images, sounds, resources, links and structured content', async () => {
  const page = await openServer(governed);
  await find(page, 'echo');
  await page.locator('.use-form textarea').fill('<b>tea</b>');
  await page.keyboard.press('Control+Enter');
  await result(page, '<b>tea</b>');
  await call(page, 'test_multiple_content_types');
  await result(page, 'Multiple content types test:');
  const image = page.locator('.call img');
  await image.waitFor();
  await sees(() => image.evaluate((element) => Reflect.get(element, 'naturalWidth')), 1);
  await call(page, 'test_audio_content');
  await page.locator('.call audio').waitFor();
  await call(page, 'resource_link');
  await page.locator('.call .address', { hasText: 'test://static-text' }).click();
  await page.locator('.offer-name', { hasText: 'test://static-text' }).waitFor();
  await page.getByRole('button', { name: 'Read', exact: true }).click();
  await result(page, 'This is the content of the static text resource.');
  await find(page, 'add');
  for (const [index, value] of ['2', '3'].entries())
    await page.locator('.use-form .form-field input').nth(index).fill(value);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await result(page, 'structured content');
  await page.locator('.call .json-number', { hasText: '5' }).waitFor();
  await page.getByRole('button', { name: 'Again', exact: true }).click();
  await page.locator('.calls li').nth(1).waitFor();
  await page.getByRole('button', { name: 'messages', exact: true }).click();
  await page.locator('#tab-messages[aria-selected="true"]').waitFor();
  assert.equal(browsing.complaints, []);
  await page.close();
});

test('a form has a field for a value that may be null, for a list of texts, and a choice of alternatives', async () => {
  const server = createServer({ name: 'forms', version: '1.0.0' });
  const properties = { note: { type: ['string', 'null'] }, tags: { type: 'array', items: { type: 'string' } } };
  const choice = (kind: string, member: string) => ({
    properties: { kind: { const: kind }, [member]: { type: 'string' } },
    required: ['kind', member],
  });
  const echo = (args: unknown) => `got ${JSON.stringify(args)}`;
  server.tool('echo', { input: { type: 'object', properties } }, echo);
  server.tool('send', { input: { type: 'object', anyOf: [choice('email', 'address'), choice('sms', 'phone')] } }, echo);
  await server.listen(socket(joinPath(mkdtempSync(joinPath(tmpdir(), 'forms-')), 's')));
  const inspector = await openInspector(server, { control: true });
  const page = await browsing.page();
  const followed = page.waitForRequest((request) => request.url().endsWith('api/calls?since=1'));
  await page.goto(inspector.url);
  // The overview follows the calls, and knows their principal: the view of the server continues.
  await followed;
  await page.click('#tab-server');
  await find(page, 'echo');
  await page.locator('.caller summary', { hasText: 'local user' }).waitFor();
  await page.getByLabel('note').fill('it is tea');
  await page.getByLabel('tags').fill('green\nblack');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await result(page, '{"note":"it is tea","tags":["green","black"]}');
  await find(page, 'send');
  await page.getByLabel('one of 2').selectOption({ label: 'kind: sms' });
  await page.getByLabel('phone').fill('112');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await result(page, '{"kind":"sms","phone":"112"}');
  assert.equal(browsing.complaints, []);
  await page.close();
  await inspector.close();
  await server.close();
});

test('answers a question of its own call on the overview, too', async () => {
  const page = await openServer(governed);
  await call(page, 'test_elicitation_sep1330_enums');
  await page.locator('.question').waitFor();
  await page.click('#tab-overview');
  const card = page.locator('.overview .question');
  await card.getByText('test_elicitation_sep1330_enums').waitFor();
  await card.getByLabel('Third Choice').check();
  await card.getByRole('button', { name: 'Accept' }).click();
  await card.waitFor({ state: 'detached' });
  await page.click('#tab-server');
  await result(page, '"titledMulti":["value3"]');
  assert.equal(browsing.complaints, []);
  await page.close();
});

test('answers forms, pages, sampling and roots; shows a task and cancels it; completes a template', async () => {
  const page = await openServer(governed);
  await call(page, 'test_elicitation_sep1330_enums');
  const card = page.locator('.question');
  await card.locator('select').nth(1).selectOption({ label: 'Second Option' });
  await card.getByLabel('Third Choice').check();
  await card.getByRole('button', { name: 'Accept' }).click();
  await result(page, '"titledSingle":"value2"');
  await result(page, '"titledMulti":["value3"]');
  await call(page, 'visit');
  const link = card.locator('a.address');
  await sees(() => link.innerText(), 'https://example.com/sign-in');
  await sees(() => link.getAttribute('rel'), 'noopener noreferrer');
  await card.getByRole('button', { name: 'I agree' }).click();
  await result(page, 'accepted');
  await call(page, 'test_input_required_result_multiple_inputs');
  await card.nth(2).waitFor();
  await card.locator('textarea').nth(0).fill('Ada');
  await card.getByLabel("the model's answer").fill('Good day');
  await card.getByLabel('roots').fill('file:///home/ada\nfile:///tmp');
  for (const [answered, name] of ['Accept', 'Answer', 'Answer'].entries()) {
    await card.getByRole('button', { name }).first().click();
    await card.nth(2 - answered).waitFor({ state: 'detached' });
  }
  await result(page, '2 roots');
  await find(page, 'slow_compute');
  await page.locator('.use-form input').first().fill('600');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.locator('.call-task', { hasText: 'working' }).waitFor();
  await page.locator('.call').getByRole('button', { name: 'Cancel' }).click();
  await page.locator('.call.cancelled').waitFor();
  await find(page, 'test://cities/{country}/{city}');
  const fields = page.locator('.use-form .form-field input');
  await fields.nth(0).fill('france');
  await fields.nth(1).fill('l');
  await page.locator('datalist option[value="lyon"]').waitFor({ state: 'attached' });
  await fields.nth(1).fill('lyon');
  await page.getByRole('button', { name: 'Read', exact: true }).click();
  await result(page, 'lyon is in france.');
  await page.locator('.offer-search').fill('calls and');
  await page.locator('.offer-row', { hasText: 'Calls and tasks' }).click();
  await page.locator('.calls li', { hasText: 'slow_compute' }).waitFor();
  assert.equal(browsing.complaints, []);
  await page.close();
});

test('axe finds nothing in forms, results and questions, light and dark', async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const look of [{ theme: 'light' }, { theme: 'dark', width: 1024, height: 700 }] as const) {
    const page = await openServer(governed, look);
    const session = await page.context().newCDPSession(page);
    // The page's policy lets no script in from outside: this one is not the page's.
    await session.send('Runtime.evaluate', { expression: axe });
    const check = async (what: string): Promise<void> => {
      const { result: found } = await session.send('Runtime.evaluate', {
        expression: `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))`,
        awaitPromise: true,
        returnByValue: true,
      });
      assert.equal(found.value, [], `${look.theme} ${what}`);
    };
    await call(page, 'test_multiple_content_types');
    await page.locator('.call img').waitFor();
    await page.locator('.caller summary').click();
    await check('result');
    await call(page, 'test_input_required_result_multiple_inputs');
    await page.locator('.question').nth(2).waitFor();
    await check('questions');
    await page.locator('.call').getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.question').first().waitFor({ state: 'detached' });
    await page.close();
  }
});
