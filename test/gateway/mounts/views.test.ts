/** Views of upstreams: a page that knows the names of its upstream works through a gateway, and reaches no other upstream. */
import { runInNewContext } from 'node:vm';
import { createServer, type Server } from 'troupe';
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { Messages } from '../../../apps/src/mounted/messages.ts';
import { withTranslation } from '../../../src/gateway/mounts/translated-page.ts';
import { suite } from '../../harness/door.ts';

const test = suite('views of mounts');

const VIEWS = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } };
const PAGE = '<!doctype html><html lang="en"><head><title>Board</title></head><body></body></html>';
const lamp = createMachine({
  initial: 'off',
  states: { off: { on: { toggle: 'on' } }, on: { on: { toggle: 'off' } } },
});

function house(): Server {
  const server = createServer({ name: 'house', version: '1.0.0', log() {} });
  server.machine('lamp', lamp, { events: { toggle: true } });
  // The page of a machine has its chart, which takes a second to draw.
  server.app('panel', { html: PAGE, tools: ['lamp_create'] });
  server.tool('reset', { visibleTo: ['model'] }, () => 'reset');
  return server;
}

function bank(): Server {
  const server = createServer({ name: 'bank', version: '1.0.0', log() {} });
  server.app('account', { html: PAGE, tools: ['pay'] });
  server.tool('pay', {}, () => 'paid');
  server.tool('lamp_toggle', {}, () => 'the lamp of the bank');
  server.resource('bank://balance', {}, () => '7');
  return server;
}

interface Opened {
  readonly client: Client;
  readonly gateway: Server;
  close(): Promise<void>;
}

async function opened(prefix?: false): Promise<Opened> {
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {} });
  const upstreams = [house(), bank()];
  const [first, second] = upstreams;
  const options = prefix === false ? { prefix } : {};
  if (first) await gateway.mount('home', first, options);
  if (second) await gateway.mount('bank', second, options);
  const client = await connect(gateway, { extensions: VIEWS });
  return {
    client,
    gateway,
    async close() {
      await client.close();
      for (const server of [gateway, ...upstreams]) await server.close();
    },
  };
}

interface FakeFrame {
  /** Posts as the page does. @returns the answer as the page gets it */
  request(method: string, params: object): Promise<Record<string, unknown>>;
  /** What the page gets of a notification of the host. */
  notified(method: string, params: object): unknown;
  /** The calls as the host gets them. */
  readonly calls: unknown[];
}

/** A page in a frame whose host passes everything on to the server: its script runs as a browser runs it. */
function framed(html: string, client: Client): FakeFrame {
  const [, names = '', script = ''] = /<script data-names="([^"]*)">(.*?)<\/script>/s.exec(html) ?? [];
  const calls: unknown[] = [];
  let listener: ((event: object) => void) | undefined;
  const answers = new Map<unknown, (message: Record<string, unknown>) => void>();
  const received: unknown[] = [];
  const deliver = (message: object): void => {
    const event = { source: host, data: structuredClone(message) };
    listener?.(event);
    assert.is(event.source, page.parent, 'the page knows its parent');
    received.push(event.data);
    answers.get(Object(event.data).id)?.(Object(event.data));
  };
  const host = {
    async postMessage(message: object) {
      const { id, method, params } = Object(structuredClone(message));
      calls.push(params);
      deliver({ jsonrpc: '2.0', id, ...(await passedOn(client, method, params)) });
    },
  };
  const page: { parent: { postMessage(message: object, origin: string): void } } = { parent: host };
  const document = {
    currentScript: { dataset: { names: names.replaceAll('&quot;', '"').replaceAll('&amp;', '&') }, remove() {} },
  };
  runInNewContext(script, {
    window: page,
    document,
    addEventListener: (_: string, listens: (event: object) => void) => {
      listener = listens;
    },
  });
  let last = 0;
  return {
    calls,
    request(method, params) {
      const id = ++last;
      const answered = new Promise<Record<string, unknown>>((resolve) => answers.set(id, resolve));
      page.parent.postMessage({ jsonrpc: '2.0', id, method, params }, '*');
      return answered;
    },
    notified(method, params) {
      deliver({ jsonrpc: '2.0', method, params });
      return Object(received.at(-1)).params;
    },
  };
}

async function passedOn(client: Client, method: string, params: Record<string, unknown>): Promise<object> {
  try {
    if (method === 'tools/call')
      return {
        result: await client.call(String(params.name), Object(params.arguments), { meta: Object(params._meta) }),
      };
    if (method === 'resources/read') return { result: await client.read(String(params.uri)) };
    return { result: { resources: await client.resources(), resourceTemplates: await client.templates() } };
  } catch (error) {
    return { error: { code: -32602, message: String(error) } };
  }
}

/** The page that a tool opens, in a frame. */
async function show(client: Client, tool: string): Promise<FakeFrame> {
  const found = (await client.tools()).find(({ name }) => name === tool);
  const { contents } = await client.read(String(Object(found?._meta?.ui).resourceUri));
  return framed(String(Object(contents[0]).text), client);
}

for (const prefix of [undefined, false] as const) {
  const named = prefix === false ? 'without a prefix' : 'with a prefix';
  const offered = (name: string): string => (prefix === false ? name : `home_${name}`);

  test(`${named}, a page calls the tools and reads the resources of its upstream by their own names`, async () => {
    const { client, close } = await opened(prefix);
    const created = await client.call(offered('lamp_create'), {});
    const { handle } = Object(created.structuredContent);
    const page = await show(client, offered('lamp_create'));
    const uri = `troupe://lamp/${handle}`;
    const toggled = await page.request('tools/call', { name: 'lamp_toggle', arguments: { handle } });
    assert.is(Object(Object(toggled.result).structuredContent).state, 'on');
    const read = await page.request('resources/read', { uri });
    const [contents] = Object(read.result).contents;
    assert.is(contents.uri, uri);
    assert.is(JSON.parse(contents.text).state, 'on');
    const watched = await page.request('tools/call', { name: 'troupe_watch', arguments: { uri } });
    assert.is(Object(Object(watched.result).structuredContent).state, 'on');
    await close();
  });

  test(`S-93 ${named}, a view reaches no tool and no resource of another upstream, and no tool that is not for views`, async () => {
    const { client, close } = await opened(prefix);
    const page = await show(client, offered('lamp_create'));
    for (const name of ['pay', 'bank_pay', 'bank/pay', 'home_pay', 'reset', '__proto__', 'constructor', 'toString']) {
      const { error, result } = await page.request('tools/call', { name, arguments: {} });
      assert.match(String(Object(error).message), /Unknown tool: home\//, `${name}: ${JSON.stringify(result)}`);
    }
    for (const uri of ['bank://balance', 'bank+bank://balance', 'bank:balance', 'ui://bank/bank/account.html']) {
      const { error, result } = await page.request('resources/read', { uri });
      assert.ok(error, `${uri}: ${JSON.stringify(result)}`);
    }
    const { result } = await page.request('resources/list', {});
    const listed = [...Object(result).resources, ...Object(result).resourceTemplates].map(
      (each) => each.uri ?? each.uriTemplate,
    );
    assert.equal(
      listed.filter((uri: string) => uri.includes('bank')),
      [],
    );
    await close();
  });
}

test('of two mounts with one name, a page calls the tool of its own upstream', async () => {
  const { client, close } = await opened();
  const page = await show(client, 'bank_pay');
  const { result } = await page.request('tools/call', { name: 'lamp_toggle', arguments: {} });
  assert.equal(Object(result).content, [{ type: 'text', text: 'the lamp of the bank' }]);
  await close();
  // Without a prefix, the name belongs to the first mount: the page of the second has no such tool.
  const plain = await opened(false);
  const other = await show(plain.client, 'pay');
  const { error } = await other.request('tools/call', { name: 'lamp_toggle', arguments: {} });
  assert.match(String(Object(error).message), /Unknown tool: bank\/lamp_toggle/);
  await plain.close();
});

test('a page gets the upstream’s names in results, notifications and the context of the host', async () => {
  const plain = new Messages({ mount: 'stock', tools: {}, plain: true });
  const tea = { jsonrpc: '2.0', id: 1, result: { contents: [{ uri: 'stock://tea', text: 'green' }] } };
  assert.equal(plain.toPage(tea), tea);
  const messages = new Messages({ mount: 'home', tools: { toggle: 'switch' }, plain: false });
  const link = (uri: string): object => ({ type: 'resource_link', uri, name: 'a' });
  const tool = { name: 'switch', inputSchema: {}, _meta: { ui: { resourceUri: 'ui://home/board' } } };
  const own = { ...tool, name: 'toggle', _meta: { ui: { resourceUri: 'ui://board' } } };
  const table: readonly (readonly [object, object])[] = [
    [
      {
        method: 'ui/notifications/tool-result',
        params: { content: [link('home+a:b')], structuredContent: { uri: 'home+a:b' } },
      },
      {
        method: 'ui/notifications/tool-result',
        params: { content: [link('a:b')], structuredContent: { uri: 'home+a:b' } },
      },
    ],
    [
      { method: 'ui/notifications/host-context-changed', params: { toolInfo: { tool } } },
      { method: 'ui/notifications/host-context-changed', params: { toolInfo: { tool: own } } },
    ],
    [
      { id: 1, result: { hostContext: { toolInfo: { tool } } } },
      { id: 1, result: { hostContext: { toolInfo: { tool: own } } } },
    ],
    [
      { id: 2, error: { code: 1, message: 'home+a:b' } },
      { id: 2, error: { code: 1, message: 'home+a:b' } },
    ],
  ];
  for (const [sent, received] of table)
    assert.equal(messages.toPage({ jsonrpc: '2.0', ...sent }), { jsonrpc: '2.0', ...received });
  assert.equal(messages.toHost({ jsonrpc: '2.0', id: 3, method: 'ui/message', params: { content: [link('a:b')] } }), {
    ...{ jsonrpc: '2.0', id: 3, method: 'ui/message' },
    params: { content: [link('home+a:b')] },
  });
  for (const other of ['text', null, 7, [], { type: 'resize' }]) {
    assert.is(messages.toHost(other), other);
    assert.is(messages.toPage(other), other);
  }
});

test('the script stands before every script of a page, after its document type, in text and in bytes', () => {
  const names = { mount: 'a', tools: { 'b"<&': 'a_b' }, plain: false };
  const beginnings = [
    '<!DOCTYPE html>',
    '\uFEFF<!doctype html>',
    ' <!-- a -- b --!>\n<!doctype html >',
    '<!-- > <script> -->',
    '',
  ];
  for (const beginning of beginnings) {
    const page = `${beginning}<html><script>start()</script></html>`;
    const contents = [
      { uri: 'ui://x', mimeType: 'text/html;profile=mcp-app', text: page },
      { uri: 'ui://x', mimeType: 'text/html+skybridge', blob: Buffer.from(page).toString('base64') },
      { uri: 'ui://x', mimeType: 'text/css', text: page },
    ];
    const result = withTranslation({ contents, ttlMs: 86_400_000 }, names);
    const [text, blob, css] = Object(result).contents;
    const start = `${beginning}<script data-names="{&quot;mount&quot;:&quot;a&quot;,&quot;tools&quot;:{&quot;b\\&quot;<&amp;&quot;:`;
    assert.ok(text.text.startsWith(start), text.text.slice(0, 200));
    assert.ok(text.text.endsWith('</script><html><script>start()</script></html>'));
    assert.is(Buffer.from(blob.blob, 'base64').toString(), text.text);
    assert.is(css.text, page);
    assert.is(result.ttlMs, 300_000);
  }
  // A browser ends this comment at once: what follows may be a script.
  const tricky = '<!--><script>first()</script>--><!doctype html>';
  const [page] = Object(
    withTranslation({ contents: [{ uri: 'ui://x', mimeType: 'text/html', text: tricky }] }, names),
  ).contents;
  assert.ok(page.text.indexOf('data-names') < page.text.indexOf('first()'));
});

test('S-93 hosts reject a call of any view for a tool of a mount without pages, if another mount has some', async () => {
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {} });
  const files = createServer({ name: 'files', version: '1.0.0', log() {} });
  files.tool('write', { meta: { 'example.com/a': 1 } }, () => 'written');
  gateway.tool('own', {}, () => 'own');
  await gateway.mount('files', files);
  const client = await connect(gateway, { extensions: VIEWS });
  const metas = async (): Promise<object> => {
    const tools = await client.tools({ fresh: true });
    return Object.fromEntries(tools.map(({ name, _meta }) => [name, _meta]));
  };
  assert.equal(await metas(), { own: undefined, files_write: { 'example.com/a': 1 } });
  const upstream = bank();
  const mount = await gateway.mount('bank', upstream);
  await mount.ready();
  const page = Object(await metas());
  assert.equal(page.files_write, { 'example.com/a': 1, ui: { visibility: ['model'] } });
  assert.equal([page.own, page.bank_lamp_toggle], [undefined, undefined]);
  await mount.close();
  assert.equal(await metas(), { own: undefined, files_write: { 'example.com/a': 1 } });
  await client.close();
  for (const server of [gateway, files, upstream]) await server.close();
});

test('S-93 a page names no tool that a rule hides from its reader', async () => {
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {} });
  gateway.authorize(({ element }) => element.name !== 'bank_lamp_toggle' || { hidden: true });
  const upstream = bank();
  await gateway.mount('bank', upstream);
  const client = await connect(gateway, { extensions: VIEWS });
  const found = (await client.tools()).find(({ name }) => name === 'bank_pay');
  const { contents } = await client.read(String(Object(found?._meta?.ui).resourceUri));
  const [, names = ''] = /data-names="([^"]*)"/.exec(String(Object(contents[0]).text)) ?? [];
  assert.match(names, 'bank_pay');
  assert.not.match(names, 'lamp_toggle');
  await client.close();
  for (const server of [gateway, upstream]) await server.close();
});

test('a client without views lists neither pages nor tools of views, and one with views lists both', async () => {
  const { gateway, client, close } = await opened();
  const other = await connect(gateway);
  const uris = async (each: Client): Promise<string[]> => (await each.resources()).map(({ uri }) => uri);
  const tools = async (each: Client): Promise<string[]> => (await each.tools()).map(({ name }) => name);
  assert.equal(
    (await uris(other)).filter((uri) => uri.startsWith('ui:')),
    [],
  );
  assert.not.ok((await tools(other)).includes('home_troupe_watch'));
  assert.is((await uris(client)).filter((uri) => uri.startsWith('ui://home/')).length, 1);
  assert.ok((await tools(client)).includes('home_troupe_watch'));
  await other.close();
  await close();
});
