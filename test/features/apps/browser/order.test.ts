/** An order from its first call to its end, in a view: official client and bridge, Chromium, and the server of this repository. */
import { gzipSync } from 'node:zlib';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createServer, http, type Server } from 'troupe';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { orderMachine, SKU, totalOf } from '../../../../examples/order/order.ts';
import { Browsing, browserSuite, counts, shows } from '../../../harness/browser.ts';
import { fullOnly } from '../../../harness/door.ts';
import { until } from '../../../harness/wait.ts';
import { openShop } from '../../../system/examples/order-shop.ts';
import { type BrowserHost, openInHost } from './host.ts';

fullOnly('opens pages; the quick tests of views are machine-view.test.ts and protocol.test.ts');

const test = browserSuite('an order in a view');
const browsing = new Browsing();
const capabilities = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } };

test.after(async () => {
  await browsing.close();
  assert.equal(browsing.complaints, []);
});

/** Bytes of the whole page with a second language, gzipped. */
const MAX_PAGE_BYTES = 14_336;
/** Milliseconds of each step of the clock. */
const TICK_MS = 20;

/** The shop of examples/order, with a clock that a test advances. */
async function serve(): Promise<{ readonly server: Server; readonly clock: SimulatedClock; readonly url: URL }> {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'shop', version: '1.0.0', clock, log: () => {} });
  server.machine('order', orderMachine, {
    input: z.object({ customer: z.string() }),
    events: {
      add_item: z.object({ sku: SKU, quantity: z.number().int().min(1).default(1) }),
      checkout: true,
      cancel: z.object({ reason: z.string().optional() }),
    },
    view: ({ context }) => ({ ...context, total: totalOf(context) }),
    annotations: { cancel: { destructiveHint: true } },
    app: true,
  });
  const transport = http({ port: 0 });
  await server.listen(transport);
  return { server, clock, url: new URL(transport.url) };
}

async function overHttp(url: URL): Promise<Client> {
  const client = new Client(
    { name: 'chat', version: '1' },
    { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

type Result = Awaited<ReturnType<Client['callTool']>>;

/** Shows the page that the tool names, with the result of its call, as a host does. */
async function show(client: Client, tool: string, args: Record<string, unknown>, result: Result): Promise<BrowserHost> {
  const { tools } = await client.listTools();
  const { resourceUri } = Object(tools.find(({ name }) => name === tool)?._meta?.ui);
  const { contents } = await client.readResource({ uri: String(resourceUri) });
  const [{ text: html, mimeType } = { text: '', mimeType: '' }] = contents.map((each) => ({ text: '', ...each }));
  assert.is(mimeType, 'text/html;profile=mcp-app');
  const size = gzipSync(String(html), { level: 9 }).length;
  assert.ok(size <= MAX_PAGE_BYTES, `${size} bytes gzipped`);
  const page = await browsing.page({ width: 760, height: 1000 });
  const host = await openInHost(page, {
    html: String(html),
    client,
    context: { theme: 'light', locale: 'en', timeZone: 'UTC' },
  });
  await host.bridge.sendToolInput({ arguments: args });
  await host.bridge.sendToolResult(result);
  await host.view.locator('.state', { hasText: /Cart|Basket/ }).waitFor();
  return host;
}

/** The names of a machine without labels, and those of examples/order. */
const PLAIN = { add: 'Add item', sku: 'Sku', checkout: 'Checkout', agreed: 'Agreed' };
const LABELLED = { add: 'Add to basket', sku: 'Article', checkout: 'Check out', agreed: 'Charge my card' };

/** Fills a cart, checks out, and agrees in the view. */
async function buy({ view }: BrowserHost, { add, sku, checkout, agreed }: typeof PLAIN): Promise<void> {
  const panel = view.getByRole('group', { name: add });
  await panel.getByLabel(sku).selectOption('kettle');
  await panel.getByLabel('Quantity').fill('2');
  await panel.getByRole('button').click();
  await view.getByText('60', { exact: true }).waitFor();
  await view.getByRole('button', { name: checkout }).click();
  const question = view.getByRole('group', { name: 'Charge Ada 60?' });
  await question.getByLabel(agreed).check();
  await question.getByRole('button', { name: 'Answer' }).click();
}

test('over HTTP (2026-07-28): fill, check out, agree in the view, and a delay in virtual time ends it; a second view follows', async () => {
  const { server, clock, url } = await serve();
  // Time passes, as changes are sent in bundles, and jumps below.
  const passing = setInterval(() => void clock.advance(TICK_MS), TICK_MS);
  const [client, other] = [await overHttp(url), await overHttp(url)];
  const args = { customer: 'Ada' };
  const created = await client.callTool({ name: 'order_create', arguments: args });
  const host = await show(client, 'order_create', args, created);
  const { handle } = Object(created.structuredContent);
  // Another person with the handle: nothing authenticates the clients of this server.
  const second = await show(
    other,
    'order_get',
    { handle },
    await other.callTool({ name: 'order_get', arguments: { handle } }),
  );
  await counts(host.view.locator('.picture svg'), 1);
  await buy(host, PLAIN);
  for (const { view } of [host, second]) {
    await view.locator('.state', { hasText: 'Packing' }).waitFor();
    await shows(view.locator('.timer'), /^Packing\s*00:0[01]:/);
  }
  await clock.advance(60_000);
  await host.view.locator('.state', { hasText: 'Shipped' }).waitFor();
  await second.view.locator('.state', { hasText: 'Shipped' }).waitFor();
  await counts(host.view.getByRole('button'), 0);
  await until(() => host.told.length >= 3, 'the texts for the model');
  assert.equal(host.told, [
    `order ${handle}: Cart, by the user in the view`,
    `order ${handle}: Confirming, by the user in the view`,
    `order ${handle}: ${host.told.at(-1)?.includes('Paying') ? 'Paying' : 'Packing'}, by the user in the view`,
  ]);
  assert.equal(second.told, []);
  // The model, which did none of this, is told with its next look.
  const looked = await client.callTool({ name: 'order_get', arguments: { handle } });
  assert.match(JSON.stringify(looked.content), /Since you last looked: /);
  assert.equal(host.requests, []);
  await Promise.all([client.close(), other.close()]);
  for (const { page } of [host, second]) await page.close();
  clearInterval(passing);
  await server.close();
});

test('over stdio (2025-11-25): examples/order as it is', async () => {
  const shop = openShop();
  const client = new Client(
    { name: 'chat', version: '1' },
    { capabilities, versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: ['2025-11-25'] },
  );
  await client.connect(new StdioClientTransport(shop.stdio));
  assert.is(client.getNegotiatedProtocolVersion(), '2025-11-25');
  const args = { customer: 'Ada' };
  const host = await show(
    client,
    'order_create',
    args,
    await client.callTool({ name: 'order_create', arguments: args }),
  );
  await buy(host, LABELLED);
  await host.view.locator('.state', { hasText: 'Shipped' }).waitFor();
  assert.is(shop.charges().length, 1);
  await client.close();
  await host.page.close();
  shop.close();
});
