/** A small server with one machine, whose page is opened late: its chart, an instance that has finished, and long names. */
import { createServer } from 'troupe';
import { type OpenInspector, openInspector } from 'troupe/inspector';
import { connect } from 'troupe/testing';
import { createMachine } from 'xstate';
import { Browsing, browserSuite, counts, lacks, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { PATIENT } from './stage.ts';
import { activeOf } from './visit.ts';

fullOnly('opens pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the page of one machine');
const browsing = new Browsing();
const server = createServer({ name: 'library', version: '1.0.0', limits: PATIENT, log: () => {} });
let inspector: OpenInspector;
let finished = '';

test.before(async () => {
  const states = { out: { on: { bring_back: 'returned' } }, returned: { type: 'final' } } as const;
  server.machine('loan', createMachine({ id: 'loan', initial: 'out', states }), { events: { bring_back: true } });
  inspector = await openInspector(server, { control: true, history: true });
  const client = await connect(server);
  const create = async (): Promise<string> => {
    const made = await client.modern('tools/call', { name: 'loan_create', arguments: {} });
    return String(Object(made.structuredContent).handle);
  };
  finished = await create();
  await client.modern('tools/call', { name: 'loan_bring_back', arguments: { handle: finished } });
  await create();
});
test.after(async () => {
  await browsing.close();
  await inspector.close();
  await server.close();
});

test('the chart without a selection is that of the only machine, at once, before the layout worker has loaded', async () => {
  const page = await browsing.page();
  await page.route('**/worker-*', () => {});
  await page.goto(inspector.url);
  await page.waitForSelector('.node.handle');
  await page.click('#tab-chart');
  await page.waitForSelector('.chart-pane[data-engine=dagre] .picture');
  await sees(() => activeOf(page), ['out']);
  await page.close();
});

test('an instance that has finished is marked in its final state, accepts no event, and does not wait', async () => {
  const page = await browsing.page();
  await page.goto(inspector.url);
  const node = page.locator('.node.handle', { hasText: finished.slice(0, 8) });
  await node.waitFor();
  await shows(node, 'returned');
  await page.waitForSelector('.waiting-table');
  await lacks(page.locator('.waiting-table'), finished.slice(0, 8));
  await node.click();
  await page.click('#tab-chart');
  await page.waitForSelector('.picture');
  await sees(() => activeOf(page), ['returned']);
  const detail = page.locator('.detail');
  await detail.getByText('It has finished').waitFor();
  await counts(detail.getByRole('button', { name: 'Send', exact: true }), 0);
  await page.close();
});

test('a value beside a long name has lines of words, not of single characters', async () => {
  const page = await browsing.page();
  await page.goto(inspector.url);
  await page.waitForSelector('.calls-table');
  await page.locator('.calls-table .row-button').first().click();
  const row = page.locator('.detail .json-row', { hasText: 'io.modelcontextprotocol/protocolVersion' });
  await row.waitFor();
  const isText = async (): Promise<boolean> => {
    const { height = 0, width = 0 } = (await row.locator('.json-string').boundingBox()) ?? {};
    return height < 40 && width > 60;
  };
  await until(isText, 'a value of at most two lines');
  await page.close();
});
