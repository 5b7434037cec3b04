/** How the page looks and how heavy it is: for those who see it badly, on a slow machine, and as the picture of the README. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, sees } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { SCALE } from '../../harness/scale.ts';
import { elapse } from '../../harness/wait.ts';
import { handleOf, type Stage, stage } from './stage.ts';
import { choose, short } from './visit.ts';

fullOnly('opens many pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the looks of the page');
const browsing = new Browsing();
let shop: Stage;

test.before(async () => {
  shop = await stage({ chatter: false });
});
test.after(async () => {
  await browsing.close();
  await shop.close();
});

/** The visible texts with less than 11 px, outside of pictures that the reader zooms. */
const SMALL = `[...document.querySelectorAll('body *')].filter((each) =>
  [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '') &&
  each.closest('svg, .unseen') === null && each.getClientRects().length > 0 &&
  Number.parseFloat(getComputedStyle(each).fontSize) < 11
).map((each) => each.outerHTML.slice(0, 120))`;

/** A part of each view that appears last. */
const VIEWS = {
  overview: '.calls-table, .waiting-table',
  chart: '.picture .state',
  messages: '.message',
  wire: '.wire-row',
  timeline: '.timeline.full',
  coverage: '.covering .picture .state',
  server: '.offer-page',
};
/** The views that have colours of their own; at full scale, all. */
const { overview, chart, timeline } = VIEWS;
const DARK_VIEWS = SCALE === 'quick' ? { overview, chart, timeline } : VIEWS;

test('axe finds nothing and no text is small, in any view, light or dark, large or small', async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const theme of ['light', 'dark'] as const) {
    const page = await browsing.page(theme === 'light' ? { theme } : { theme, width: 1024, height: 700 });
    await page.goto(shop.url);
    await page.waitForSelector('.status.live');
    const session = await page.context().newCDPSession(page);
    // The page's policy lets no script in from outside: this one is not the page's.
    await session.send('Runtime.evaluate', { expression: axe });
    const violations = async (): Promise<unknown> => {
      const { result } = await session.send('Runtime.evaluate', {
        expression: `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html.slice(0, 160) + ' ' + failureSummary).slice(0, 3).join(' | ')))`,
        awaitPromise: true,
        returnByValue: true,
      });
      return result.value;
    };
    await sees(violations, [], `${theme} with nothing selected`);
    const { claude } = shop.clients;
    assert.ok(claude);
    await handleOf(claude, 'Mary');
    await choose(page, short(shop.orders.Ada));
    for (const [tab, part] of Object.entries(theme === 'light' ? VIEWS : DARK_VIEWS)) {
      await page.click(`#tab-${tab}`);
      await page.locator(part).first().waitFor();
      await sees(violations, [], `${theme} ${tab}`);
      await sees(() => page.evaluate(SMALL), [], `${theme} ${tab}`);
    }
    await page.keyboard.press('?');
    await page.locator('dialog.help[open]').waitFor();
    await sees(violations, [], `${theme} help`);
    await sees(() => page.locator('dialog.help').evaluate((help) => help.scrollTop), 0, 'help begins at its top');
    await page.close();
  }
});

test('the first paint comes within 300 ms', async () => {
  const page = await browsing.page();
  const paints: number[] = [];
  for (let visit = 0; visit < 5; visit += 1) {
    await page.goto('about:blank');
    await page.goto(shop.url);
    await page.waitForSelector('.node.handle');
    const paint = await page.evaluate(
      () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.POSITIVE_INFINITY,
    );
    paints.push(paint);
  }
  // The best of them is what the page costs: load comes and goes.
  assertFigure(Math.min(...paints), 300, 'the first paint');
  await page.close();
});

/** True where the pictures are written, and not only taken. */
const WRITES = process.env.TROUPE_PICTURES === '1';

test('the picture of the README is the page, in light and dark', async () => {
  // A story of its own: the shop of the other tests has been busy.
  const scene = await stage();
  const reader = { width: 1360, height: 850, scale: 2, motion: WRITES };
  const pages = await Promise.all(
    (['light', 'dark'] as const).map(async (theme) => ({ theme, page: await browsing.page({ theme, ...reader }) })),
  );
  for (const { page } of pages) {
    await page.goto(scene.url);
    await page.waitForSelector('.status.live');
  }
  await scene.begin();
  for (const { theme, page } of pages) {
    const question = page.locator('.waiting-table tr', { hasText: 'Charge Ada 17?' });
    await question
      .filter({ hasText: short(scene.orders.Ada) })
      .locator('.left-bar')
      .waitFor();
    await page.waitForSelector('.waiting-table [role=progressbar]');
    await page.waitForSelector('.failure-table tr.failed');
    // The pointer is nowhere, and what glows has faded.
    await page.mouse.move(680, 849);
    if (WRITES) await elapse(2_500, 'what glows fades');
    const picture = await page.screenshot();
    assert.ok(picture.length > 50_000, `${theme}: ${picture.length} bytes`);
    if (WRITES)
      writeFileSync(fileURLToPath(new URL(`../../../docs/images/inspector-${theme}.png`, import.meta.url)), picture);
    await page.close();
  }
  await scene.close();
});
