/** A page that is opened after things have begun shows them, and how long they have lasted. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { openRecording } from '../../../src/inspector/open-recording.ts';
import { Browsing, browserSuite, counts, lacks, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { type Stage, stage, tool } from './stage.ts';
import { choose, open, short } from './visit.ts';

fullOnly('opens pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the page, opened late');
const browsing = new Browsing();
let shop: Stage;
let page: Page;

test.before(async () => {
  shop = await stage({ chatter: false });
  const { cursor } = shop.clients;
  assert.ok(cursor);
  tool(cursor, 'count_stock').catch(() => {});
  page = await open(browsing, shop);
});
test.after(async () => {
  await browsing.close();
  await shop.close();
});

test('a call from before is selected as itself, not as its table', async () => {
  await choose(page, 'count_stock');
  const row = page.locator('.node', { hasText: 'count_stock' });
  await page.locator('.detail h2', { hasText: 'tools/call count_stock' }).waitFor();
  await sees(() => row.getAttribute('aria-selected'), 'true');
  await counts(page.locator('.node[aria-selected=true]'), 1);
  await page.locator('.detail .waits', { hasText: /its result, until (?:\w{3} \d+(?:, \d+)? )?\d\d:\d\d/ }).waitFor();
  await shows(page.locator('.detail'), /It arrived before the observation/);
});

test('the age of an actor is exact, and the time in its state is a lower bound', async () => {
  const order = short(shop.orders.Ada);
  await choose(page, order);
  await page.locator('.detail h2', { hasText: order }).waitFor();
  await shows(page.locator('.detail .stands'), /for .* or longer/);
  await lacks(page.locator('.detail .facts', { hasText: 'age' }), /or longer/);
});

test('Escape clears the filter with its box', async () => {
  const nodes = page.locator('.node');
  await page.fill('#filter', 'cursor');
  await page.locator('.node', { hasText: 'claude-code' }).waitFor({ state: 'detached' });
  await page.press('#filter', 'Escape');
  await page.locator('.node', { hasText: 'claude-code' }).waitFor();
  await sees(() => page.inputValue('#filter'), '');
  await until(async () => (await nodes.count()) > 3, 'the nodes of the tree');
});

test('a recording is shown without a server, by the page of troupe open', async () => {
  const { origin, hash } = new URL(shop.url);
  const response = await fetch(`${origin}/api/recording`, { headers: { authorization: `Bearer ${hash.slice(1)}` } });
  const folder = mkdtempSync(join(tmpdir(), 'troupe-open-'));
  const file = join(folder, 'day of tea.json.gz');
  writeFileSync(file, gzipSync(await response.text()));
  const shown = await openRecording(file, { port: 0, clock: systemClock, log: () => {} });
  rmSync(folder, { recursive: true });
  const reader = await browsing.reader({ width: 1024, height: 700 });
  // Two tabs share a stream: each reads the recording itself.
  const tabs = [await reader.newPage(), await reader.newPage()];
  for (const tab of tabs) {
    await tab.goto(shown.url);
    await tab.locator('.status.recording').waitFor();
    await choose(tab, 'count_stock');
    await tab.locator('.detail .waits', { hasText: /its result, until (?:\w{3} \d+(?:, \d+)? )?\d\d:\d\d/ }).waitFor();
    await counts(tab.getByText('back to the server'), 0);
    await sees(async () => (await tab.locator('.header').boundingBox())?.width, 1024, 'the width of the header');
  }
  await reader.close();
  await shown.close();
});

test('no page has written an error to its console', () => {
  assert.equal(browsing.complaints, []);
});
