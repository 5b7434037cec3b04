/** The view of a script: its calls at their lines, what it waits for, its logs and its journal; and the steps of a recorded one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { createServer, type Server, ToolError } from 'troupe';
import { openInspector, record } from 'troupe/inspector';
import { connect, type TestClient } from 'troupe/testing';
import * as assert from 'uvu/assert';
import * as z from 'zod';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { openRecording } from '../../../src/inspector/open-recording.ts';
import { Browsing, browserSuite, counts, lacks, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';

fullOnly(
  'opens pages; the quick test of the page is overview.test.ts, and that of the calls model/script-lane.test.ts',
);

const test = browserSuite('the view of a script');
const browsing = new Browsing();
const folder = mkdtempSync(join(tmpdir(), 'troupe-script-view-'));
const file = join(folder, 'run.json');

const CODE = `const { orders } = await shop.list_orders({ customer: 'ada', password: 'hunter2-zq7' });
console.log(orders.length + ' orders');
for (const id of orders) {
  try {
    await shop.refund({ id });
  } catch (error) {
    console.log(error.message);
  }
}

await sleep(3_600_000);
return orders.length;`;

function shopOf(): Server {
  const shop = createServer({ name: 'shop', version: '1.0.0' });
  const input = z.object({ customer: z.string(), password: z.string() });
  const reads = { readOnlyHint: true };
  shop.tool('list_orders', { description: 'Lists orders.', input, annotations: reads }, () => ({
    orders: ['A1', 'A2', 'A3'],
  }));
  shop.tool('refund', { description: 'Pays an order back.', input: z.object({ id: z.string() }) }, ({ id }) => {
    if (id === 'A2') throw new ToolError('A2 was paid back before.');
    return { refunded: id };
  });
  return shop;
}

let server: Server;
let inspector: Awaited<ReturnType<typeof openInspector>>;
let client: TestClient;
let first: Page;
const laters: Page[] = [];

test.before(async () => {
  server = createServer({ name: 'office', version: '1.0.0', code: { effects: 'allow', waitMs: 100 } });
  await server.mount('shop', shopOf(), { expose: 'code', trust: true });
  inspector = await openInspector(server);
  await record(server, file);
  client = await connect(server, { deadlineMs: 60_000, auth: { principal: 'ada' } });
  first = await browsing.page({ width: 1_280, height: 800 });
  await first.goto(inspector.url);
  await first.waitForSelector('.status.live');
});
test.after(async () => {
  await browsing.close();
  await inspector.close();
  await server.close();
  rmSync(folder, { recursive: true });
});

const linesOf = (page: Page) => page.locator('.script-code li');
const hereOf = (page: Page) => page.locator('.script-code li.here');

test('a script that waits shows its calls at their lines, and until when it sleeps', async () => {
  await counts(first.locator('#tab-script'), 0, 'no script has run');
  await client.modern('tools/call', { name: 'run_code', arguments: { code: CODE } });
  await first.click('#tab-script');
  await first.locator('.script .waits', { hasText: 'the end of sleep (call 5)' }).getByText(/5\d:/).waitFor();
  await counts(first.locator('.script-calls tbody tr'), 5);
  await shows(linesOf(first).nth(4), /^5\s+await shop\.refund\(\{ id \}\);\s+2\s+3\s+4$/);
  await shows(hereOf(first), /^11\s+await sleep[\s\S]*call 5 sleep\s+sleeps until \d/);
  const failed = first.locator('.script-calls tr', { hasText: 'threw' });
  await shows(failed, /^3\s+shop\.refund\s+\{"id":"A2"\}\s+threw\s+A2 was paid back before\.\s+5\s+/);
  await sees(() => first.locator('.script-logs').innerText(), '3 orders\nA2 was paid back before.');
  await shows(first.locator('.script-journal summary'), /Journal \d+ entries, by quickjs-wasi/);
  await lacks(first, 'hunter2-zq7');
  // Its call leads to it.
  await first.click('#tab-overview');
  await first.locator('.calls-table tr', { hasText: 'run_code' }).getByRole('button').click();
  await first.locator('.detail').getByRole('button', { name: 'its script, calls and journal' }).click();
  await first.locator('.script-code li.here', { hasText: 'await sleep' }).waitFor();
});

test('a viewer that comes later sees the same script', async () => {
  const later = await browsing.page({ width: 390, height: 800 });
  laters.push(later);
  await later.goto(inspector.url);
  await later.waitForSelector('.status.live');
  await later.click('#tab-script');
  await later.locator('.script .waits', { hasText: 'the end of sleep (call 5)' }).waitFor();
  await counts(later.locator('.script-calls tbody tr'), 5);
  const overflow = () => later.locator('.script').evaluate((all) => all.scrollWidth - all.clientWidth);
  await sees(overflow, 0, 'nothing is wider than the page');
});

test('a script that has failed shows its error, and the reader chooses among the scripts', async () => {
  await client.modern('tools/call', { name: 'run_code', arguments: { code: 'throw new Error("no");' } });
  const runs = first.locator('.script-head select');
  await counts(runs.locator('option'), 2, 'scripts');
  await runs.selectOption({ index: 0 });
  await first.locator('.script .bad', { hasText: 'Error: no (line 1' }).waitFor();
  await shows(first.locator('.script-head'), /failed/);
  await runs.selectOption({ index: 1 });
  await first.locator('.script-code li.here', { hasText: 'await sleep' }).waitFor();
});

test('the reader of a recording steps from result to result, and sees the line, the call and its result', async () => {
  for (const page of [first, ...laters]) await page.close();
  await server.close();
  const opened = await openRecording(file, { port: 0, clock: systemClock, log() {} });
  const page = await browsing.page({ width: 1_280, height: 800 });
  await page.goto(opened.url);
  await page.waitForSelector('.status');
  await page.click('#tab-script');
  const runs = page.locator('.script-head select');
  await counts(runs.locator('option'), 2, 'scripts');
  await runs.selectOption({ index: 1 });
  // A key belongs to the list that has the focus.
  await page.click('#tab-script');
  const steps = page.locator('.script-steps');
  await page.keyboard.press('p');
  for (let at = 0; at < 8 && !(await steps.innerText()).startsWith('step 1 '); at += 1) await page.keyboard.press('p');
  await steps.getByText('step 1 of').waitFor();
  await counts(page.locator('.script-code li.here'), 0, 'it has just begun');
  await page.keyboard.press('n');
  await page.locator('.script-code li.here', { hasText: /call 1 shop.list_orders\s*returned/ }).waitFor();
  await shows(hereOf(page), /^1\s[\s\S]*customer\s*ada[\s\S]*A1/);
  await page.keyboard.press('n');
  await page.locator('.script-code li.here', { hasText: /call 2 shop.refund\s*returned/ }).waitFor();
  await shows(hereOf(page), /^5\s/);
  await page.keyboard.press('n');
  await page.locator('.script-code li.here', { hasText: /call 3 shop.refund\s*threw/ }).waitFor();
  await counts(page.locator('.script-calls tbody tr'), 3, 'later calls are not made yet');
  await opened.close();
});

test('no page has written an error to its console', () => {
  assert.equal(browsing.complaints, []);
});
