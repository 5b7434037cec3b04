/** Pages behind a gateway in Chromium: that of a machine, and one with the official library, in the official bridge as their host. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createServer, http } from 'troupe';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { orderMachine, SKU, totalOf } from '../../../../examples/order/order.ts';
import { type BrowserHost, openInHost } from '../../../features/apps/browser/host.ts';
import { Browsing, browserSuite, counts, sees } from '../../../harness/browser.ts';
import { fullOnly } from '../../../harness/door.ts';
import { until } from '../../../harness/wait.ts';

fullOnly('opens pages; the quick test is test/gateway/mounts/views.test.ts');

const test = browserSuite('pages behind a gateway');
const browsing = new Browsing();

test.after(async () => {
  await browsing.close();
  assert.equal(browsing.complaints, []);
});

const capabilities = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } };
const library = readFileSync(
  fileURLToPath(import.meta.resolve('@modelcontextprotocol/ext-apps/app-with-deps')),
  'utf8',
).replace(
  /export\{.*?\bas App\b.*?\};?\s*$/s,
  (exported) => `globalThis.App = ${/([\w$]+) as App\b/.exec(exported)?.[1]};`,
);

/** A page as others write it: with the official library, inside of one file. */
const PAGE = `<!doctype html><html lang="en"><head><title>Stock</title></head><body><p id="shown"></p><ul></ul>
<script type="module">${library.replaceAll('</script', '<\\/script')}</script>
<script type="module">
const app = new globalThis.App({ name: 'stock', version: '1' }, {});
const line = (text) => { const item = document.createElement('li'); item.textContent = text; document.querySelector('ul').append(item); };
app.ontoolresult = ({ content }) => { document.querySelector('#shown').textContent = content[0].uri; };
await app.connect();
line('opened by ' + app.getHostContext().toolInfo.tool.name);
const counted = await app.callServerTool({ name: 'count', arguments: { item: 'tea' } });
line('counted ' + counted.content[0].text);
const { contents } = await app.readServerResource({ uri: 'stock://tea' });
line('read ' + contents[0].uri + ' ' + contents[0].text);
for (const name of ['order_create', 'shop_order_create'])
  try { line(JSON.stringify(await app.callServerTool({ name, arguments: { customer: 'Eve' } }))); }
  catch (error) { line('refused ' + error.message); }
const foreign = document.createElement('script');
foreign.textContent = 'globalThis.ran = true';
document.head.append(foreign);
line('policy ' + (globalThis.ran === true ? 'ignored' : 'obeyed') + ', scripts ' + document.querySelectorAll('[data-names]').length);
</script></body></html>`;

/** A gateway with two upstreams, and an official client of it. */
async function opened(prefix?: false) {
  const shop = createServer({ name: 'shop', version: '1.0.0', log() {} });
  shop.machine('order', orderMachine, {
    input: z.object({ customer: z.string() }),
    events: {
      add_item: z.object({ sku: SKU, quantity: z.number().int().min(1).default(1) }),
      checkout: true,
      cancel: z.object({ reason: z.string().optional() }),
    },
    view: ({ context }) => ({ ...context, total: totalOf(context) }),
    app: true,
  });
  const stock = createServer({ name: 'stock', version: '1.0.0', log() {} });
  stock.app('stock', { html: PAGE, tools: ['show'] });
  stock.tool('show', {}, () => ({ content: [{ type: 'resource_link', uri: 'stock://tea', name: 'tea' }] }));
  stock.tool('count', { input: z.object({ item: z.string() }) }, ({ item }) => `${item}: 7`);
  stock.resource('stock://tea', {}, () => 'green');
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {} });
  const options = prefix === false ? { prefix } : {};
  await gateway.mount('shop', shop, options);
  await gateway.mount('stock', stock, options);
  const transport = http({ port: 0 });
  await gateway.listen(transport);
  const client = new Client({ name: 'chat', version: '1' }, { capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(transport.url)));
  return {
    client,
    async close() {
      await client.close();
      for (const server of [gateway, shop, stock]) await server.close();
    },
  };
}

/** Calls a tool and shows its page with the result, as a host does. */
async function show(client: Client, name: string, args: Record<string, unknown>): Promise<BrowserHost> {
  const { tools } = await client.listTools();
  const tool = tools.find((each) => each.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  const { contents } = await client.readResource({ uri: String(Object(tool._meta?.ui).resourceUri) });
  const result = await client.callTool({ name, arguments: args });
  const page = await browsing.page({ width: 760, height: 1000 });
  const html = String(Object(contents[0]).text);
  const host = await openInHost(page, { html, client, context: { locale: 'en', toolInfo: { tool } } });
  await host.bridge.sendToolInput({ arguments: args });
  await host.bridge.sendToolResult(result);
  return host;
}

for (const prefix of [undefined, false] as const) {
  const offered = (mount: string, name: string): string => (prefix === false ? name : `${mount}_${name}`);

  test(`the page of a machine adds, asks and follows its instance${prefix === false ? ' without a prefix' : ''}`, async () => {
    const { client, close } = await opened(prefix);
    const { view, page, requests } = await show(client, offered('shop', 'order_create'), { customer: 'Ada' });
    await view.locator('.state', { hasText: 'Cart' }).waitFor();
    const panel = view.getByRole('group', { name: 'Add item' });
    await panel.getByLabel('Sku').selectOption('kettle');
    await panel.getByLabel('Quantity').fill('2');
    await panel.getByRole('button').click();
    await view.getByText('60', { exact: true }).waitFor();
    await view.getByRole('button', { name: 'Checkout' }).click();
    const question = view.getByRole('group', { name: 'Charge Ada 60?' });
    await question.getByLabel('Agreed').check();
    await question.getByRole('button', { name: 'Answer' }).click();
    // The page learns of the delay that ends the payment by its watch.
    await view.locator('.state', { hasText: 'Packing' }).waitFor();
    assert.equal(requests, []);
    await page.close();
    await close();
  });

  test(`a page with the official library knows the names of its upstream, and reaches no other${prefix === false ? ' without a prefix' : ''}`, async () => {
    const { client, close } = await opened(prefix);
    const { view, page } = await show(client, offered('stock', 'show'), {});
    await view.getByText('policy').waitFor();
    const line = (text: string | RegExp) => view.locator('li', { hasText: text });
    for (const text of ['opened by show', 'counted tea: 7', 'read stock://tea green'])
      await counts(line(text), 1, text);
    await counts(line(/^refused .*Unknown tool: stock\//), 2, 'tools of the other upstream');
    // The script of the gateway stands before the policy of the page, which is obeyed all the same.
    await counts(line('policy obeyed, scripts 0'), 1, 'the policy');
    await counts(view.locator('li'), 6);
    await until(() => browsing.complaints.length > 0, 'a complaint');
    assert.match(browsing.complaints.splice(0).join(), 'Content Security Policy');
    await sees(() => view.locator('#shown').textContent(), 'stock://tea');
    await page.close();
    await close();
  });
}
