/** The view of everything that a server offers: found, read, exported, and harmless whatever its names contain. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import type { Page } from 'playwright-core';
import { createServer } from 'troupe';
import { openInspector } from 'troupe/inspector';
import * as assert from 'uvu/assert';
import everything from '../../../examples/everything/server.ts';
import { Browsing, browserSuite } from '../../harness/browser.ts';

const test = browserSuite('the view of the server');
const browsing = new Browsing();
let url = '';
let closeAll: () => Promise<void>;

test.before(async () => {
  const inspector = await openInspector(everything);
  url = inspector.url;
  closeAll = () => everything.close();
});
test.after(async () => {
  await browsing.close();
  await closeAll();
});

async function openServer(address = url): Promise<Page> {
  const page = await browsing.page();
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
  const about = await page.locator('.offer-page').innerText();
  assert.match(about, /Everything[\s\S]*Call any tool[\s\S]*listChanged[\s\S]*2026-07-28[\s\S]*maxInFlight/);
  assert.is(await page.locator('.offer-page img.offer-icon').count(), 1);
  await find(page, 'json_schema_2020_12_tool');
  const schema = await page.locator('.schema').first().innerText();
  assert.match(schema, /address\s+object[\s\S]*street\s+string[\s\S]*phone\s+email[\s\S]*requires phone/);
  await page.getByText('Show the JSON Schema').click();
  await page.locator('.json', { hasText: '$schema' }).waitFor();
  await find(page, 'add');
  assert.match(
    await page.locator('.offer-page').innerText(),
    /read-only[\s\S]*idempotent[\s\S]*closed world[\s\S]*sum\s+number\s+required/,
  );
  await find(page, 'test://cities/{country}/{city}');
  assert.match(await page.locator('.offer-page').innerText(), /country[\s\S]*the server suggests values/);
  assert.equal(browsing.complaints, []);
  await page.close();
});

test('the keys reach the list, the element, and the JSON', async () => {
  const page = await openServer();
  await page.focus('.offer-list .list');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await page.locator('.offer-name', { hasText: 'echo' }).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  assert.match((await page.locator(':focus').getAttribute('class')) ?? '', /offer-name/);
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
  assert.match(await exported.locator('.offer-page').innerText(), /Returns a pointer to a resource/);
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
  assert.ok((await page.locator('.offer-row').count()) < 100, 'only the rows in view are rendered');
  await find(page, 'tool_999');
  await find(page, 'hostile');
  assert.is(await page.locator('.offer-page h2').innerText(), markup);
  assert.is(await page.locator('.offer-page img').count(), 0);
  assert.match(await page.locator('.schema').innerText(), /contains itself/);
  for (let level = 0; level < 4; level += 1) await page.locator('.schema-twist[aria-expanded="false"]').first().click();
  assert.is(await page.locator('.schema-name', { hasText: 'next' }).count(), 5);
  await page.close();
  await server.close();
  assert.equal(browsing.complaints, []);
});
