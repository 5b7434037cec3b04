/** Twenty thousand calls in one go: the page stays usable and reports the omitted records. */
import { createServer } from 'troupe';
import { openInspector } from 'troupe/inspector';
import { connect } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, sees } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { elapse } from '../../harness/wait.ts';

fullOnly('opens pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the page, in a flood');
const browsing = new Browsing();
test.after(() => browsing.close());

const CALLS = 20_000;

test('a flood of 20,000 calls leaves the page usable', async () => {
  const server = createServer({ name: 'flooded', version: '1.0.0' });
  server.tool('nothing', { description: 'Does nothing.' }, () => 'done');
  const inspector = await openInspector(server);
  const client = await connect(server, { deadlineMs: 100_000 });
  await client.initialize();
  const page = await browsing.page();
  await page.goto(inspector.url);
  await page.waitForSelector('.node.session');
  const wireTab = page.locator('#tab-wire');
  const place = await wireTab.boundingBox();
  // As text: what builds this file would put names into it that the page does not have.
  await page.evaluate(`
    window.longest = 0;
    let last = performance.now();
    setInterval(() => {
      const now = performance.now();
      window.longest = Math.max(window.longest, now - last);
      last = now;
    }, 4);
  `);
  let left = CALLS;
  const caller = async (): Promise<void> => {
    while (left-- > 0) await client.call('nothing');
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  await page.locator('.trouble-bar', { hasText: 'Too many records at once' }).waitFor();
  // A tab that moves between press and release of the button gets no click.
  await sees(() => wireTab.boundingBox(), place);
  const before = performance.now();
  await wireTab.click();
  await page.locator('.wire-row', { hasText: 'nothing' }).first().waitFor();
  const clicked = performance.now() - before;
  await page.click('#tab-messages');
  await page.locator('.message').first().waitFor();
  await page.click('#tab-timeline');
  await elapse(500, 'the page draws the timeline');
  const longest = Number(await page.evaluate('window.longest'));
  assertFigure(clicked, 5_000, 'showing the wire');
  assertFigure(longest, 2_000, 'the longest time without an answer of the page');
  assert.equal(browsing.complaints, []);
  await server.close();
});
