/** The home page: one table of everything that waits, one of the failures, and what is folded away elsewhere. */
import { isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import { createServer } from 'troupe';
import { openInspector } from 'troupe/inspector';
import { connect } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, counts, sees, shows } from '../../harness/browser.ts';
import { until } from '../../harness/wait.ts';
import { join, type Stage, stage, tool } from './stage.ts';
import { short } from './visit.ts';

const test = browserSuite('the overview');
const browsing = new Browsing();
let shop: Stage;
/** The server forgets what happened some seconds after the last page is closed: this one stays open. */
let page: Page;

test.before(async () => {
  shop = await stage({ chatter: false });
  page = await browsing.page();
  await page.goto(shop.url);
  await page.waitForSelector('.status.live');
});
test.after(async () => {
  await browsing.close();
  await shop.close();
});

test('the page opens with it: who waits, for what, for whom, until when and why, and what failed', async () => {
  await sees(() => page.locator('#tab-overview').getAttribute('aria-selected'), 'true');
  await page.getByText('No call has failed, and no actor has crashed.').waitFor();
  await shop.begin();

  const ada = `order ${short(shop.orders.Ada)}`;
  const question = page.locator('.waiting-table tr', { hasText: '“Charge Ada 17?”' });
  await question.getByText('the user of claude-code 2.1.4').waitFor();
  // The page requests the views of waiting actors: they have the deadline, and the handle that asks.
  await question.filter({ hasText: ada }).locator('.left-bar').waitFor();
  await shows(question, /confirming[\s\S]*order_checkout/);
  await counts(question, 1, 'the call and the handle wait for one thing');
  const refund = page.locator('.waiting-table tr', { hasText: 'Pay 42 € back for o-7?' });
  await shows(refund, /^refund\s+call/);
  const counting = page.locator('.waiting-table tr', { hasText: 'count_stock' });
  await counting.locator('[role=progressbar]').waitFor();
  await shows(counting, /\d+ of 40 · shelf \d+/);

  const added = page.locator('.calls-table tr', { hasText: 'order_add_item' }).first();
  await added.getByText(/^handle: .*, sku: coffee$/).waitFor();
  await shows(added, /claude-code[\s\S]*Invalid arguments for tool "order_add_item"/);

  const deadlines = () =>
    page
      .locator('.waiting-table tr.busy .cell-until time')
      .evaluateAll((all) => all.map((each) => each.getAttribute('datetime')));
  await until(async () => (await deadlines()).length >= 4, 'four deadlines');
  const isSorted = (all: readonly (string | null)[]): boolean => isDeepStrictEqual(all, [...all].sort());
  await until(async () => isSorted(await deadlines()), 'the earliest deadline first');

  const labels = page.locator('.failure-table tr', { hasText: 'print_label' });
  await shows(labels, /The printer is out of paper\.\s*× 3/);
  await labels.click();
  await page.locator('.detail h2', { hasText: 'print_label' }).waitFor();
});

test('on a phone the view has the whole width, with the actors above it on demand and the detail below it', async () => {
  const width = 390;
  await page.setViewportSize({ width, height: 844 });
  await page.reload();
  await page.waitForSelector('.waiting-table .row-button');
  /** The widths of panes; 0 for one that is not shown. */
  const widths = (...panes: readonly string[]) =>
    Promise.all(panes.map(async (pane) => (await page.locator(`.pane.${pane}`).boundingBox())?.width ?? 0));
  await sees(() => page.evaluate('document.documentElement.scrollWidth'), width);
  await sees(() => widths('middle', 'actors'), [width, 0]);
  await page.locator('.waiting-table .row-button').first().click();
  await page.waitForSelector('.detail h2');
  await sees(() => widths('middle', 'detail'), [width, width]);
  await page.click('button[aria-label="Show the actors"]');
  await page.locator('.pane.actors').waitFor({ state: 'visible' });
  await sees(() => widths('middle', 'actors'), [width, 320]);
});

test.full('the logo leads home, and the table is moved through with the keys', async () => {
  const page = await browsing.page();
  await page.goto(shop.url);
  await page.waitForSelector('.waiting-table .row-button');
  await counts(page.locator('.detail'), 0, 'the tables have the width of the page');
  await page.locator('.row-button').first().focus();
  await page.keyboard.press('ArrowDown');
  const name = String(await page.evaluate('document.activeElement.title'));
  await page.keyboard.press('Enter');
  await page.waitForSelector('.detail h2');
  await sees(() => page.locator('.row-button[aria-pressed=true]').first().getAttribute('title'), name);
  await page.keyboard.press('5');
  await page.waitForSelector('.view .timeline.full');
  await counts(page.locator('.timeline'), 1, 'one timeline, not two');
  await page.click('.logo');
  await page.waitForSelector('.overview');
  await counts(page.locator('.detail'), 0);
  await page.close();
});

test.full('emitters and tables of requests are folded away in the tree', async () => {
  const page = await browsing.page();
  await page.goto(shop.url);
  await page.waitForSelector('.node.session');
  await counts(page.locator('.node.emitter, .node.requests:not(:has-text("goose"))'), 0);
  await page.locator('.node.group', { hasText: 'internal' }).click();
  await page.locator('.node.emitter', { hasText: 'emitter · claude-code 2.1.4' }).waitFor();
  await page.locator('.node.requests', { hasText: 'in-flight requests · claude-code 2.1.4' }).waitFor();
  await page.close();
});

test.full('the progress of a call is folded under it, in the messages and on the wire', async () => {
  const server = createServer({ name: 'counting', version: '1.0.0' });
  server.tool('count', { description: 'Counts.' }, (_, ctx) => {
    for (let done = 1; done <= 5; done += 1) ctx.progress(done, 5);
    return 'done';
  });
  const inspector = await openInspector(server);
  const client = await join(server, 'claude-code', '2.1.4');
  const page = await browsing.page();
  await page.goto(inspector.url);
  await page.waitForSelector('.node.session');
  await page.click('#tab-messages');
  await tool(client, 'count', {}, { progressToken: 'five' });
  const fold = page.locator('.message-fold', { hasText: '+5' });
  await fold.waitFor();
  const progress = page.locator('.message', { hasText: 'notifications/progress' });
  await counts(progress, 0);
  await fold.click();
  await progress.nth(4).waitFor();
  await page.locator('.message-fold').click();
  await progress.first().waitFor({ state: 'detached' });
  await page.click('#tab-wire');
  await page.locator('.wire-row', { hasText: 'count' }).locator('.notices', { hasText: '+5' }).waitFor();
  await counts(page.locator('.wire-row', { hasText: 'notifications/progress' }), 0);
  await page.close();
  await inspector.close();
  await server.close();
});

test.full('the columns of the wire are as wide as the names, and a cut name has a title', async () => {
  for (const width of [1440, 1024]) {
    const page = await browsing.page({ width, height: 700 });
    await page.goto(shop.url);
    await page.click('#tab-wire');
    const row = page.locator('.wire-row', { hasText: 'Charge Ada 17?' });
    await row.waitFor();
    const cut = () =>
      page
        .locator('.wire-row b, .wire-row .who')
        .evaluateAll((all) =>
          all
            .filter((each) => each.scrollWidth > each.clientWidth && each.clientWidth > 0)
            .map((each) => each.getAttribute('title') ?? `${each.textContent} without a title`),
        );
    await sees(cut, [], `names that are cut at ${width} pixels`);
    await sees(() => row.locator('b').getAttribute('title'), 'Charge Ada 17?');
    await page.close();
  }
});

test.full(
  'the coverage counts from the start of the server, and lists the statecharts of its author first',
  async () => {
    const page = await browsing.page();
    await page.goto(shop.url);
    await page.click('#tab-coverage');
    await page.locator('.coverage-since', { hasText: 'since the start' }).waitFor();
    await counts(page.locator('.coverage-row'), await page.locator('.coverage-row', { hasText: 'order' }).count());
    await page.locator('.coverage-fold').click();
    await page.locator('.coverage-row', { hasText: 'session' }).waitFor();
    await page.close();
  },
);

test.full('the filter applies to both tables', async () => {
  const page = await browsing.page();
  await page.goto(shop.url);
  await page.waitForSelector('.failure-table tr.failed');
  await page.fill('#filter', 'print_label');
  await page.locator('.waiting-table').waitFor({ state: 'detached' });
  await counts(page.locator('.failure-table tr.failed'), 1);
  await page.close();
});

test.full('while no client is connected, the page shows how to connect one', async () => {
  const server = createServer({ name: 'alone', version: '1.0.0' });
  const entry = (client: string) => `{ "mcpServers": { "alone": "${client}" } }`;
  const ways = ['Cursor', 'VS Code'].map((client) => ({ client, text: entry(client), file: `~/${client}.json` }));
  const inspector = await openInspector(server, { connect: () => ({ note: 'Give it this entry.', ways }) });
  const page = await browsing.page();
  await page.goto(inspector.url);
  await page.getByText('No client is connected. Give it this entry.').waitFor();
  await page.getByRole('button', { name: 'VS Code' }).click();
  await sees(() => page.locator('.connect pre').innerText(), entry('VS Code'));
  await page.locator('.connect code', { hasText: '~/VS Code.json' }).waitFor();
  await join(server, 'claude-code', '2.1.4');
  await page.locator('.connect').waitFor({ state: 'detached' });
  await page.close();
  await inspector.close();
  await server.close();
});

test.full('a client without a session that called before the page was opened is a client', async () => {
  const server = createServer({ name: 'idle', version: '1.0.0' });
  server.tool('wait', {}, () => 'done');
  const inspector = await openInspector(server, { connect: () => ({ note: 'Give it this entry.', ways: [] }) });
  const goose = await connect(server);
  const page = await browsing.page();
  await page.goto(inspector.url);
  await page.getByText('No client is connected.').waitFor();
  await counts(page.locator('.tree .node', { hasText: 'clients' }), 0);
  await page.close();
  await goose.modern('tools/list', {}, { 'io.modelcontextprotocol/clientInfo': { name: 'goose', version: '1.4.0' } });
  const later = await browsing.page();
  await later.goto(inspector.url);
  await later.locator('.tree .node', { hasText: 'goose 1.4.0' }).waitFor();
  await later.locator('.connect').waitFor({ state: 'detached' });
  await later.close();
  await inspector.close();
  await server.close();
});

test.full(
  'while no client is connected, a viewer with control finds the forms of the tools on the overview',
  async () => {
    const server = createServer({ name: 'alone', version: '1.0.0' });
    for (let n = 1; n <= 14; n += 1) server.tool(`tool_${n}`, { title: `Tool ${n}` }, () => 'done');
    for (const control of [true, false]) {
      const inspector = await openInspector(server, { control });
      const page = await browsing.page();
      await page.goto(inspector.url);
      await page.getByText('No client is connected.').waitFor();
      if (control) {
        await page.getByRole('button', { name: 'all 14 tools, and all else on the Server tab' }).waitFor();
        await counts(page.locator('.tools-to-call button:not(.link)'), 12);
        await page.getByRole('button', { name: 'Tool 3', exact: true }).click();
        await page.getByRole('heading', { name: 'Tool 3' }).waitFor();
        await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
      } else await counts(page.locator('.tools-to-call'), 0);
      await page.close();
      await inspector.close();
    }
    await server.close();
  },
);

test.full('a gateway has a line for each upstream, and a call leads to the call that it became', async () => {
  const upstream = createServer({ name: 'github', version: '1.0.0', log: () => {} });
  upstream.tool('merge', { description: 'Merges.' }, () => 'merged');
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log: () => {} });
  await gateway.mount('gh', upstream);
  const inspector = await openInspector(gateway);
  const page = await browsing.page();
  await page.goto(String(inspector.url));
  await page.waitForSelector('.status.live');
  const client = await join(gateway, 'claude-code', '2.1.4');
  await tool(client, 'gh_merge');
  const line = page.locator('.nodes li', { hasText: 'offering.current' });
  await line.getByText('1 call, 0 failed, 0 open').waitFor();
  await page.locator('.tree').getByText('upstreams').waitFor();
  await page.keyboard.press('4');
  await page.locator('.wire').getByText('gh_merge').click();
  await page.locator('.detail h2', { hasText: 'gh_merge' }).waitFor();
  await page.locator('.detail .chain button', { hasText: 'merge' }).click();
  await page.locator('.detail .kind', { hasText: 'to the server' }).waitFor();
  await page.locator('.detail h3', { hasText: 'Relayed for' }).waitFor();
  await page.close();
  await client.close();
  await inspector.close();
  await gateway.close();
});

test('no page has written an error to its console', () => {
  assert.equal(browsing.complaints, []);
});
