/** A large chart in a small window: its text is readable, its active states are in view, and panels make room for it. */
import type { Page } from 'playwright-core';
import { createServer } from 'troupe';
import { type OpenInspector, openInspector } from 'troupe/inspector';
import type { TestClient } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, sees } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { BREWERY_EVENTS, breweryMachine } from './big-machine.ts';
import { join, PATIENT, tool } from './stage.ts';

fullOnly('opens pages; the quick test of the page is overview.test.ts');

const test = browserSuite('charts on the page');
const browsing = new Browsing();
const server = createServer({ name: 'brewery', version: '1.0.0', limits: PATIENT });
let inspector: OpenInspector;
let client: TestClient;
let handle = '';

test.before(async () => {
  server.machine('brewery', breweryMachine, { events: BREWERY_EVENTS });
  inspector = await openInspector(server);
  client = await join(server, 'claude', '2');
  handle = String(Object((await tool(client, 'brewery_create')).structuredContent).handle);
});
test.after(async () => {
  await browsing.close();
  await inspector.close();
  await server.close();
});

const send = (event: string) => tool(client, `brewery_${event}`, { handle });

/** The page with the chart of the brewery. */
async function chart(width: number, height: number): Promise<Page> {
  const page = await browsing.page({ width, height });
  await page.goto(inspector.url);
  await page.locator('.node.handle').click();
  await page.click('#tab-chart');
  await page.locator('.picture .state').first().waitFor();
  return page;
}

/** The sizes of the texts of the chart on the screen, in pixels. */
const textSizes = (page: Page): Promise<readonly number[]> =>
  page.evaluate(`[...document.querySelectorAll('.picture text')].map(
    (each) => Number.parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a
  )`);

/** Waits until the box of the active state is inside of the pane. */
async function isInView(page: Page, path: string): Promise<void> {
  const inside = `(() => {
    const state = document.querySelector('.picture .state.active[data-path="${path}"] rect')?.getBoundingClientRect();
    const pane = document.querySelector('.chart-pane').getBoundingClientRect();
    return (
      state !== undefined &&
      state.left >= pane.left - 1 &&
      state.right <= pane.right + 1 &&
      state.top >= pane.top - 1 &&
      state.bottom <= pane.bottom + 1
    );
  })()`;
  await until(async () => Boolean(await page.evaluate(inside)), `the state ${path} in view`);
}

/** The least size at which a text is readable, in pixels. */
const READABLE = 10.99;

/** Waits until all texts of the chart are readable, or until one is not: the page draws a change in its next frame. */
async function isReadable(page: Page, readable: boolean): Promise<void> {
  await until(
    async () => Math.min(...(await textSizes(page))) >= READABLE === readable,
    `texts of the chart that are ${readable ? '' : 'not '}readable`,
  );
}

test('text has at least 11 px at 1024×700, and the active states are in view', async () => {
  const page = await chart(1024, 700);
  await until(async () => (await textSizes(page)).length > 40, 'the texts of the chart');
  await isReadable(page, true);
  await isInView(page, 'closed');
  for (const event of ['open', 'deliver', 'heat', 'drain', 'finish', 'alarm', 'inspect']) await send(event);
  await isInView(page, 'inspected');
  await isReadable(page, true);
  // The whole picture on demand, and back.
  await page.click('.chart-tools button[aria-label="fit"]');
  await isReadable(page, false);
  await page.locator('.chart-pane').press('c');
  await isInView(page, 'inspected');
  await isReadable(page, true);
  await page.close();
});

/** The scale of the picture on the screen. */
const scaleOf = (page: Page): Promise<number> => page.evaluate(`document.querySelector('.picture').getScreenCTM().a`);

test('the view that the viewer has chosen holds when the final layout replaces the draft, until they choose another chart', async () => {
  for (const choice of ['fit', 'larger'] as const) {
    const page = await browsing.page({ width: 1024, height: 700 });
    let load: () => void = () => {};
    const loads = new Promise<void>((resolve) => {
      load = resolve;
    });
    await page.route('**/worker-*', async (route) => {
      await loads;
      await route.continue();
    });
    await page.goto(inspector.url);
    await page.locator('.node.handle').click();
    await page.click('#tab-chart');
    await page.locator('.chart-pane[data-engine=dagre] .picture').waitFor();
    const before = await scaleOf(page);
    await page.click(`.chart-tools button[aria-label="${choice}"]`);
    await until(async () => (await scaleOf(page)) !== before, `the effect of ${choice}`);
    const chosen = await scaleOf(page);
    load();
    await page.locator('.chart-pane[data-engine=elk] .picture').waitFor();
    if (choice === 'fit') await isReadable(page, false);
    else await sees(() => scaleOf(page), chosen);
    // Another chart begins at a readable size, and so does this one after it.
    const inspected = page.locator('.picture .state[data-path="inspected"]');
    await page.locator('.node.session').click();
    await inspected.waitFor({ state: 'detached' });
    await page.locator('.node.handle').click();
    await inspected.waitFor();
    await until(async () => (await scaleOf(page)) === before, `the scale ${before}`);
    await page.close();
  }
});

test('panels collapse by button and key, give their room to the chart, and stay collapsed', async () => {
  const page = await chart(1024, 700);
  const widthOf = async (): Promise<number> => (await page.locator('.chart-pane').boundingBox())?.width ?? 0;
  const before = await widthOf();
  await page.click('button[aria-label="Hide the actors"]');
  await page.keyboard.press(']');
  await page.keyboard.press('\\');
  await page.locator('.pane.actors').waitFor({ state: 'hidden' });
  await page.locator('.pane.detail').waitFor({ state: 'hidden' });
  await page.locator('.pane.strip').waitFor({ state: 'hidden' });
  await until(async () => (await widthOf()) > 1_000, `a chart that is wider than ${before} px`);
  await page.reload();
  await page.waitForSelector('.status.live');
  await sees(() => page.locator('.pane.actors').isVisible(), false);
  await page.click('button[aria-label="Show the actors"]');
  await page.locator('.node.handle').click();
  await sees(() => page.locator('.pane.detail').isVisible(), false);
  await page.keyboard.press(']');
  await page.locator('.detail h2', { hasText: 'brewery' }).waitFor();
  await page.close();
});

test('no page has written an error to its console', () => {
  assert.equal(browsing.complaints, []);
});
