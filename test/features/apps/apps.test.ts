/** Apps: the pages of a server, how clients find them, and what clients without views see of them. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { ReloadHost } from '../../../src/cli/reload/reload-host.ts';
import { Endpoints } from '../../../src/cli/serving/endpoints.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { type AppOptions, createServer, DefinitionError, memory, type Server } from '../../../src/index.ts';
import { connect, SimulatedClock, settled, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { itemsOf, namesOf, PAGE, refusalOf, session, VIEWS, WITH_VIEWS } from './support.ts';

const test = suite('apps');

const BOARD: AppOptions = {
  html: PAGE,
  tools: ['board_show'],
  csp: { connectDomains: ['https://api.example.com'], resourceDomains: [] },
  permissions: ['clipboardWrite'],
  title: 'The board',
};

/** Without views if `app` is false: the same server as an author writes it today. */
function boards(app = true): Server {
  const server = createServer({ name: 'team', version: '1.0.0', log: () => {} });
  server.tool('board_show', { description: 'Shows the board', meta: { 'example.com/shelf': 3 } }, () => 'three cards');
  server.tool('board_move', { ...(app ? { app: 'board' } : {}) }, () => 'moved');
  if (app) server.tool('board_poll', { visibleTo: ['app'] }, (_args, ctx) => ({ views: ctx.client.views }));
  server.tool('other', () => 'other');
  server.resource('team://names', () => 'Ada');
  if (app) server.app('board', BOARD);
  return server;
}

async function uriOf(client: TestClient): Promise<string> {
  const [tool] = itemsOf('tools/list', await client.send('tools/list'));
  return String(Object(Object(tool?._meta).ui).resourceUri);
}

const withoutMeta = (items: readonly JsonObject[]): readonly JsonObject[] => items.map(({ _meta: _, ...item }) => item);

test('names the page of a tool in both spellings, and keeps the rest of its _meta', async () => {
  const server = boards();
  for (const views of [true, false]) {
    const client = await session(server, '2025-06-18', views);
    const [show, move] = itemsOf('tools/list', await client.send('tools/list'));
    const uri = await uriOf(client);
    assert.match(uri, /^ui:\/\/team\/board\.[0-9a-f]{8}\.html$/);
    assert.equal(show?._meta, { 'example.com/shelf': 3, ui: { resourceUri: uri }, 'ui/resourceUri': uri });
    assert.equal(move?._meta, { ui: { resourceUri: uri }, 'ui/resourceUri': uri });
  }
  await server.close();
});

test('serves a page of a server whose name has a lone surrogate', async () => {
  const server = createServer({ name: 'team \ud800', version: '1.0.0', log: () => {} });
  server.app('board', { html: PAGE });
  const client = await session(server, '2025-11-25', true);
  const [board] = itemsOf('resources/list', await client.send('resources/list'));
  assert.match(String(board?.uri), 'ui://team%20%EF%BF%BD/board.');
  await server.close();
});

test('serves the page under its address, with the same _meta in the list and in the contents', async () => {
  const server = boards();
  const client = await session(server, '2025-11-25', true);
  const uri = await uriOf(client);
  const ui = {
    csp: { connectDomains: ['https://api.example.com'] },
    permissions: { clipboardWrite: {} },
    prefersBorder: true,
  };
  const listed = itemsOf('resources/list', await client.send('resources/list')).find((one) => one.uri === uri);
  assert.equal(listed, {
    uri,
    name: 'board',
    title: 'The board',
    mimeType: 'text/html;profile=mcp-app',
    _meta: { ui },
  });
  const { contents } = await client.send('resources/read', { uri });
  const [page] = Array.isArray(contents) ? contents : [];
  const { text, ...rest } = Object(page);
  assert.equal(rest, { uri, mimeType: 'text/html;profile=mcp-app', _meta: { ui } });
  assert.match(text, /^<!doctype html>/);
  await server.close();
});

test('answers the address of an earlier page with the current one, and shows no template', async () => {
  const server = boards();
  const client = await connect(server);
  const old = 'ui://team/board.00000000.html';
  const { contents, ttlMs, cacheScope } = await client.modern('resources/read', { uri: old }, WITH_VIEWS);
  const [page] = Array.isArray(contents) ? contents : [];
  assert.is(Object(page).uri, old);
  assert.match(Object(page).text, /<title>Board<\/title>/);
  assert.equal({ ttlMs, cacheScope }, { ttlMs: 86_400_000, cacheScope: 'public' });
  assert.equal(await namesOf(client, 'resources/templates/list', WITH_VIEWS), []);
  for (const uri of ['ui://team/board.html', 'ui://team/other.00000000.html', 'ui://other/board.00000000.html'])
    assert.match(await refusalOf(client.modern('resources/read', { uri })), /Resource not found/);
  await server.close();
});

test('announces the extension in either era, if there is a page or a tool for views', async () => {
  const server = boards();
  const client = await connect(server);
  const announced = { 'io.modelcontextprotocol/ui': {} };
  assert.equal(Object((await client.modern('server/discover')).capabilities).extensions, announced);
  assert.equal(Object((await client.initialize('2024-11-05')).capabilities).extensions, announced);
  const plain = boards(false);
  const { capabilities } = await (await connect(plain)).modern('server/discover');
  assert.is(Object(capabilities).extensions, undefined);
  await Promise.all([server.close(), plain.close()]);
});

test('S-68: lists pages and tools for views to clients that show views, in either era, and to no shared cache', async () => {
  const server = boards();
  const client = await connect(server);
  const all = ['board_show', 'board_move', 'board_poll', 'other', 'troupe_watch'];
  assert.equal(await namesOf(client, 'tools/list', WITH_VIEWS), all);
  assert.equal(await namesOf(client, 'resources/list', WITH_VIEWS), ['team://names', 'board']);
  for (const capabilities of [
    { experimental: VIEWS },
    { extensions: { 'io.modelcontextprotocol/ui': {} } },
    { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html', 'text/html;profile=mcp-app'] } } },
  ])
    assert.equal(
      await namesOf(client, 'tools/list', { 'io.modelcontextprotocol/clientCapabilities': capabilities }),
      all,
    );
  const { cacheScope } = await client.modern('tools/list', {}, WITH_VIEWS);
  assert.is(cacheScope, 'private');
  assert.equal(await namesOf(await session(server, '2025-11-25', true), 'tools/list'), all);
  await server.close();
});

test('S-68: answers clients without views as before except for _meta', async () => {
  const [before, after] = [boards(false), boards()];
  const others = [
    undefined,
    {
      'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [] } } },
    },
    { 'io.modelcontextprotocol/clientCapabilities': { extensions: { other: {} } } },
  ];
  const [old, now] = [await connect(before), await connect(after)];
  for (const meta of others)
    for (const method of ['tools/list', 'resources/list', 'resources/templates/list'] as const) {
      const [{ ...was }, { ...is }] = [await old.modern(method, {}, meta), await now.modern(method, {}, meta)];
      assert.equal(withoutMeta(itemsOf(method, is)), withoutMeta(itemsOf(method, was)), method);
      assert.equal({ ...is, tools: [], resources: [] }, { ...was, tools: [], resources: [] });
    }
  for (const revision of ['2024-11-05', '2025-03-26']) {
    const [first, second] = [await session(before, revision, false), await session(after, revision, false)];
    for (const method of ['tools/list', 'resources/list'] as const)
      assert.equal(await second.send(method), await first.send(method));
  }
  assert.equal(await now.call('board_move'), await old.call('board_move'));
  await Promise.all([before.close(), after.close()]);
});

test('serves a tool for views to any client by its name, and tells the handler who shows views', async () => {
  const server = boards();
  for (const views of [true, false]) {
    const client = await session(server, '2025-11-25', views);
    assert.equal((await client.call('board_poll')).structuredContent, { views });
  }
  const client = await session(server, '2025-11-25', true);
  const tools = itemsOf('tools/list', await client.send('tools/list'));
  assert.equal(tools[2]?._meta, { ui: { visibility: ['app'] } });
  await server.close();
});

test('pages of the longer list follow each other, beside those of the shorter one', async () => {
  const server = createServer({ name: 'team', version: '1.0.0', log: () => {}, limits: { pageSize: 2 } });
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    server.tool(name, name === 'b' || name === 'd' ? { visibleTo: ['app'] } : {}, () => name);
  const client = await connect(server);
  const listed = async (meta: JsonObject): Promise<readonly (readonly unknown[])[]> => {
    const pages: (readonly unknown[])[] = [];
    for (let cursor: unknown = undefined; ; ) {
      const params = typeof cursor === 'string' ? { cursor } : {};
      const result = await client.modern('tools/list', params, meta);
      pages.push(itemsOf('tools/list', result).map(({ name }) => name));
      cursor = result.nextCursor;
      if (cursor === undefined) return pages;
    }
  };
  assert.equal(await listed(WITH_VIEWS), [['a', 'b'], ['c', 'd'], ['e']]);
  assert.equal(await listed({}), [['a', 'c'], ['e']]);
  assert.equal(await listed(WITH_VIEWS), [['a', 'b'], ['c', 'd'], ['e']]);
  await server.close();
});

test('S-67: puts a policy into the page that runs its own scripts only', async () => {
  const script = '\n  start();\n';
  const server = createServer({ name: 'team', version: '1.0.0', log: () => {} });
  const html = `<!doctype html>\r\n<html><head><meta charset="utf-8"></head><body><script type="module">\r\n  start();\r\n</script></body></html>`;
  const { uri } = server.app('own', { html, csp: { resourceDomains: ['https://cdn.example.com'] } });
  const client = await connect(server);
  const { contents } = await client.read(uri);
  const text = String(Object(contents[0]).text);
  const hash = createHash('sha256').update(script).digest('base64');
  // The second hash is that of the script that keeps the policy in the pages of hosts.
  assert.match(text, `script-src 'sha256-${hash}' 'sha256-`);
  assert.match(text, "' https://cdn.example.com;");
  assert.match(text, '<head><meta http-equiv="Content-Security-Policy" content="default-src \'none\';');
  assert.match(text, "connect-src 'none'");
  assert.match(text, "form-action 'none'");
  const policy = '<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src \'none\'">';
  const { uri: strict } = server.app('strict', { html: policy });
  assert.is(Object((await client.read(strict)).contents[0]).text, policy);
  await server.close();
});

test('S-67: the policy is before every script and holds, whatever comments and names of elements contain', async () => {
  const server = createServer({ name: 'team', version: '1.0.0', log: () => {} });
  const client = await connect(server);
  const hash = createHash('sha256').update('start()').digest('base64');
  const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-${hash}' 'sha256-`;
  const pages: readonly (readonly [html: string, begins: string])[] = [
    ['<!doctype html><!-- <head> --><script>start()</script>', '<!doctype html>'],
    ['<!doctype html><p><head-line></head-line><script>start()</script>', '<!doctype html>'],
    ['<!doctype html><script>start()</script><html><head></head></html>', '<!doctype html>'],
    [
      '<!doctype html><html lang="en">\n<!-- a --><head><script>start()</script>',
      '<!doctype html><html lang="en">\n<!-- a --><head>',
    ],
    ['<!doctype html><!-- a page has no <script> --><script>start()</script>', '<!doctype html>'],
    ['<!doctype html><script data-src="a">start()</script>', '<!doctype html>'],
    ['<!doctype html><!-- <meta http-equiv="Content-Security-Policy"> --><script>start()</script>', '<!doctype html>'],
  ];
  for (const [index, [html, begins]] of pages.entries()) {
    const { uri } = server.app(`page${index}`, { html });
    const { contents } = await client.read(uri);
    assert.ok(String(Object(contents[0]).text).startsWith(begins + policy), html);
  }
  await server.close();
});

test('S-67: rejects origins that would open a page too far, with the fix', () => {
  const server = createServer({ name: 'team', version: '1.0.0', log: () => {} });
  const wide: readonly (readonly [string, RegExp])[] = [
    ['*', /"\*" would permit every server/],
    ['https://*', /expected an origin/],
    ['https://*.com', /a host below the wildcard/],
    ['http://example.com', /expected https or wss/],
    ['ws://example.com', /expected https or wss/],
    ['https://example.com/path', /without a path/],
    ['https://example.com/', /without a path/],
    ['example.com', /expected an origin/],
    ["https://example.com; script-src 'unsafe-eval'", /expected an origin/],
    ['https://user@example.com', /expected an origin/],
    ['data:', /expected an origin/],
    ["'unsafe-inline'", /expected an origin/],
  ];
  for (const [origin, why] of wide)
    assert.throws(
      () => server.app('board', { html: PAGE, csp: { connectDomains: [origin] } }),
      (error: unknown) =>
        error instanceof DefinitionError &&
        /app "board": csp.connectDomains: /.test(error.message) &&
        why.test(error.message),
      origin,
    );
  const good = [
    'https://a.example.com',
    'https://*.example.com',
    'wss://a.example.com:8443',
    'http://localhost:5173',
    'http://[::1]:80',
  ];
  server.app('board', { html: PAGE, csp: { connectDomains: good } });
  assert.throws(() => server.app('board', { html: PAGE }), /already registered/);
  assert.throws(() => server.app('a b', { html: PAGE }), /letters, digits/);
  assert.throws(() => server.app('other', { html: new URL('file:///nowhere/board.html') }), /cannot read the page/);
});

test('a tool that opens an unknown app stops the server from listening, and names the apps', async () => {
  const server = boards();
  server.tool('lost', { app: 'bord' }, () => '');
  assert.match(await refusalOf(connect(server)), /tool "lost": app: there is no app "bord"; there are board/);
});

test('gives a changed page another address, and notifies clients of changed tools', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-apps-'));
  const file = join(folder, 'board.html');
  writeFileSync(file, PAGE);
  const server = createServer({ name: 'team', version: '1.0.0', log: () => {}, limits: { gatherMs: 1 } });
  server.tool('board_show', { app: 'board' }, () => '');
  const html = pathToFileURL(file);
  const app = server.app('board', { html });
  const client = await session(server, '2025-11-25', true);
  const first = await uriOf(client);
  assert.is(app.uri, first);
  writeFileSync(file, PAGE.replace('Board', 'A new board'));
  const told = client.next((message) => Object(message).method === 'notifications/tools/list_changed');
  server.apps.update({ name: 'board', html });
  await told;
  const second = await uriOf(client);
  assert.is.not(second, first);
  for (const uri of [first, second]) assert.match(Object((await client.read(uri)).contents[0]).text, /A new board/);
  app.remove();
  const [tool] = itemsOf('tools/list', await client.send('tools/list'));
  assert.is(tool?._meta, undefined);
  assert.match(await refusalOf(client.read(second)), /Resource not found/);
  await server.close();
  rmSync(folder, { recursive: true });
});

test('troupe dev serves the apps of the program, and replaces them at each reload', async () => {
  const options = { name: 'edited', version: '1.0.0', clock: new SimulatedClock(), log: () => {} };
  const host = new ReloadHost(
    options,
    new Endpoints('dev', { values: {}, lists: {}, positionals: [], rest: [] }),
    async () => {},
  );
  const { transport, connect: open } = memory();
  await host.open([transport]);
  const client = new TestClient(open());
  const load = async (register: (program: Server) => void): Promise<readonly unknown[]> => {
    const program = createServer(options);
    register(program);
    host.adopt(program);
    await settled();
    return namesOf(client, 'resources/list', WITH_VIEWS);
  };
  assert.equal(await load((program) => program.app('board', { html: PAGE })), ['board']);
  assert.equal(await load((program) => program.app('other', { html: () => PAGE })), ['other']);
  const withViews = (program: Server): void => {
    program.tool('sum', { app: true }, () => '');
    program.machine('lamp', createMachine({ on: { toggle: {} } }), { events: { toggle: true }, app: true });
  };
  for (const _ of ['first', 'again']) assert.equal([...(await load(withViews))].sort(), ['lamp', 'tools/sum']);
  assert.equal(await load((program) => program.tool('none', () => '')), []);
});

test('rules decide about a page as about any resource', async () => {
  const server = boards();
  server.authorize(({ element }) => (element.name.startsWith('ui://') ? { hidden: true } : true));
  const client = await connect(server);
  assert.equal(await namesOf(client, 'resources/list', WITH_VIEWS), ['team://names']);
  assert.match(await refusalOf(client.modern('resources/read', { uri: 'ui://team/board.00000000.html' })), /not found/);
  await server.close();
});
