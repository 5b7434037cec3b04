/** What leaves the page, and who shares it: no secret, one stream for all tabs, a file that shows the same. */
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, lacks, sees } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';
import { handleOf, type Stage, stage, tool } from './stage.ts';
import { activeOf, choose, open, short } from './visit.ts';

fullOnly('opens many pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the page, shared');
const browsing = new Browsing();
let shop: Stage;

test.before(async () => {
  shop = await stage({ chatter: false });
});
test.after(async () => {
  await browsing.close();
  await shop.close();
});

test('a secret in the arguments is neither in the stream nor in the page', async () => {
  const secret = 'hunter2-correct-horse';
  const page = await browsing.page();
  const client = await page.context().newCDPSession(page);
  await client.send('Network.enable');
  let streamed = '';
  client.on('Network.dataReceived', ({ data }) => {
    if (data !== undefined) streamed += Buffer.from(data, 'base64').toString('utf8');
  });
  client.on('Network.responseReceived', ({ requestId, response }) => {
    if (response.url.includes('/api/stream'))
      void client.send('Network.streamResourceContent', { requestId }).catch(() => {});
  });
  await page.goto(shop.url);
  await page.waitForSelector('.status.live');
  const { cursor } = shop.clients;
  assert.ok(cursor);
  const call = tool(cursor, 'refund', { order: 'o-7', password: secret });
  call.catch(() => {});
  await page.click('#tab-wire');
  const row = page.locator('.wire-row', { hasText: 'refund' }).first();
  await row.click();
  await page.locator('.json-redacted').first().waitFor();
  await until(() => streamed.includes('o-7'), 'the call in the stream');
  assert.not.match(streamed, new RegExp(secret));
  await lacks(page, secret);
  await page.close();
});

test('an export opens as a file, without a server, and shows the same', async () => {
  const page = await open(browsing, shop);
  await choose(page, short(shop.orders.Ada));
  await page.waitForSelector('.picture .state.active');
  const [before, names] = [await activeOf(page), await page.locator('.node-name').allInnerTexts()];
  await page.click('summary[aria-label="Export and import"]');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByText('Export as one HTML file').click(),
  ]);
  const file = joinPath(tmpdir(), `troupe-export-${process.pid}.html`);
  await download.saveAs(file);
  const reader = await browsing.reader();
  await reader.setOffline(true);
  const exported = await reader.newPage();
  await exported.goto(`file://${file}`);
  await exported.waitForSelector('.status.recording');
  await choose(exported, short(shop.orders.Ada));
  await exported.click('#tab-chart');
  await exported.waitForSelector('.picture .state.active');
  await sees(() => activeOf(exported), before);
  await exported.locator('.strip [role=slider]:not([aria-valuetext*=live])').waitFor();
  await sees(() => exported.locator('.node-name').allInnerTexts(), names);
  await reader.close();
  await page.close();
});

/** A browser opens six connections to a server: eight tabs with a stream each would have none for the last two. */
const TABS = atScale({ quick: 3, full: 3, proof: 8 });

test(`${TABS} tabs are live at once, over one stream`, async () => {
  const reader = await browsing.reader();
  const streams = new Set<string>();
  reader.on('request', (request) => {
    if (request.url().includes('/api/stream')) streams.add(request.url());
  });
  const pages = await Promise.all(
    Array.from({ length: TABS }, async () => {
      const page = await reader.newPage();
      await page.goto(shop.url);
      await page.waitForSelector('.status.live');
      return page;
    }),
  );
  const { claude } = shop.clients;
  assert.ok(claude);
  const handle = await handleOf(claude, 'Annie');
  for (const page of pages)
    await page
      .locator('.node', { hasText: short(handle) })
      .first()
      .waitFor();
  assert.is(streams.size, 1);
  // The one that has the stream goes: another takes it up.
  await pages[0]?.close();
  const next = await handleOf(claude, 'Frances');
  for (const page of pages.slice(1))
    await page
      .locator('.node', { hasText: short(next) })
      .first()
      .waitFor();
  await reader.close();
});

test('no page has written an error to its console', () => {
  // A tab may name what it shows while the stream moves to another tab: the server knows no viewer then.
  const others = browsing.complaints.filter((text) => !text.includes('404'));
  assert.equal(others, []);
});
