/** What goes wrong is shown: an event that no state takes, with what led to it; a token that nobody gave; a server that was started again. */
import { createServer } from 'troupe';
import { openInspector } from 'troupe/inspector';
import { assign, fromCallback, setup } from 'xstate';
import { Browsing, browserSuite, counts, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { join, PATIENT, tool } from './stage.ts';

fullOnly('opens pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the page, in trouble');
const browsing = new Browsing();
test.after(() => browsing.close());

const lamp = setup({
  types: { context: {} as { switched: number }, events: {} as { type: 'switch' } | { type: 'dim' } },
  actors: { bulb: fromCallback(({ sendBack }) => sendBack({ type: 'dim' })) },
}).createMachine({
  id: 'lamp',
  context: { switched: 0 },
  initial: 'off',
  states: {
    off: { on: { switch: { target: 'on', actions: assign({ switched: ({ context }) => context.switched + 1 }) } } },
    on: { invoke: { id: 'bulb', src: 'bulb' }, on: { switch: 'off' } },
  },
});

function lamps() {
  const server = createServer({ name: 'lamps', version: '1.0.0', limits: PATIENT });
  server.machine('lamp', lamp, { description: 'A lamp.', events: { switch: true } });
  return server;
}

test('an event that no state takes is flagged, with the message of the wire that it came from', async () => {
  const server = lamps();
  const inspector = await openInspector(server);
  const client = await join(server, 'claude-code', '2.1.4');
  const page = await browsing.page();
  await page.goto(inspector.url);
  await page.waitForSelector('.status.live');
  const made = await tool(client, 'lamp_create');
  const handle = String(Object(made.structuredContent).handle);
  await tool(client, 'lamp_switch', { handle });
  const wrong = page.locator('.failure-table tr.failed', { hasText: 'did not handle dim' });
  await wrong.waitFor();
  await counts(page.locator('.node.handle .sign.trouble'), 1, 'its sign in the tree is a triangle');
  await wrong.click();
  const chain = page.locator('.record .chain').first();
  await chain.getByText('tools/call lamp_switch').waitFor();
  await page.click('#tab-messages');
  await page.locator('.message.is-unhandled').first().waitFor();
  await server.close();
  await page.locator('.status.lost, .status.ended').waitFor();
  await page.close();
  browsing.complaints.length = 0;
});

test('a page without the token says what to open', async () => {
  const server = lamps();
  const inspector = await openInspector(server);
  const page = await browsing.page();
  await page.goto(new URL('/', inspector.url).href);
  await page.getByText('This address has no token.').waitFor();
  const wrong = await browsing.page();
  await wrong.goto(`${new URL('/', inspector.url).href}#${'x'.repeat(43)}`);
  await wrong.locator('.status.refused').waitFor();
  await server.close();
});

test('a server that is started again at the same place is taken up, and the page says so', async () => {
  const first = lamps();
  const before = await openInspector(first);
  const token = new URL(before.url).hash.slice(1);
  const port = Number(new URL(before.url).port);
  await join(first, 'claude-code', '2.1.4');
  const page = await browsing.page();
  await page.goto(before.url);
  await page.locator('.node.session', { hasText: 'claude-code' }).waitFor();
  await first.close();
  await page.locator('.trouble-bar').waitFor();
  const second = lamps();
  await openInspector(second, { port, token });
  await join(second, 'cursor', '1.9.0');
  await page.locator('.node.session', { hasText: 'cursor' }).waitFor();
  await counts(page.locator('.node.session', { hasText: 'claude-code' }), 0);
  await shows(page.locator('.notice'), /restarted/);
  await second.close();
});
