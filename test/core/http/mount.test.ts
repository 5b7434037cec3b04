/** `server.fetch` and `server.node`: the same answers as `http()`, mounted in a server of somebody else. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer as createNodeServer, type Server as NodeServer } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { WebRequest } from '../../../src/core/http/web-request.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { createServer, ErrorCode } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { times } from '../../harness/scale.ts';
import { busy } from '../../system/fuzz/conversation.ts';
import { modern } from './modern.ts';
import { type Kind, type Mounted, Served } from './served.ts';
import { type Asking, ask, initialize } from './support.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

const test = suite('mounted servers');

const APP = 'https://app.example.com';
const OPTIONS = { allowedOrigins: [APP], retryMs: 777 };

/** Requests that answer alike wherever they come in. */
const REQUESTS: readonly (readonly [what: string, asking: Asking])[] = [
  ['a list', modern('tools/list')],
  ['a discovery', modern('server/discover')],
  ['a call', modern('tools/call', { params: { name: 'echo', arguments: { text: 'héllo 💡' } } })],
  [
    'a call that reports progress',
    modern('tools/call', { params: { name: 'count', arguments: { to: 2 } }, meta: { progressToken: 1 } }),
  ],
  [
    'a call that wants JSON',
    modern('tools/call', {
      params: { name: 'count', arguments: { to: 2 } },
      meta: { progressToken: 1 },
      headers: { accept: 'application/json' },
    }),
  ],
  ['an unknown method', modern('tools/paint')],
  ['an unknown tool', modern('tools/call', { params: { name: 'nobody' } })],
  ['a header that says something else', modern('tools/list', { headers: { 'mcp-method': 'prompts/list' } })],
  [
    'a notification',
    { headers: { 'mcp-protocol-version': '2026-07-28' }, body: { jsonrpc: '2.0', method: 'notifications/x' } },
  ],
  ['no JSON', { body: '{' }],
  ['no UTF-8', { body: Buffer.from([0xff, 0xfe]) }],
  ['nothing', { body: '' }],
  ['a legacy request without a session', { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } }],
  [
    'a session that nobody knows',
    { body: { jsonrpc: '2.0', id: 1, method: 'ping' }, headers: { 'mcp-session-id': 'unknown' } },
  ],
  ['an initialize that is refused', { body: { ...initialize('2025-11-25'), params: {} } }],
  ['another content type', modern('tools/list', { headers: { 'content-type': 'text/plain' } })],
  ['a compressed body', modern('tools/list', { headers: { 'content-encoding': 'gzip' } })],
  ['neither form', modern('tools/list', { headers: { accept: 'text/html' } })],
  ['an allowed origin', modern('tools/list', { headers: { origin: APP } })],
  ['a foreign origin', modern('tools/list', { headers: { origin: 'http://evil.example.com' } })],
  ['a foreign host', modern('tools/list', { headers: { host: 'evil.example.com' } })],
  ['a body that is too long', { ...modern('tools/list'), body: ' '.repeat(20_001) }],
  ['a preflight', { method: 'OPTIONS', headers: { origin: APP, 'access-control-request-method': 'POST' } }],
  ['a GET of the modern revision', { method: 'GET', headers: { 'mcp-protocol-version': '2026-07-28' } }],
  ['a GET without a session', { method: 'GET', headers: { 'last-event-id': 'abcdefghijkl_3' } }],
  ['a DELETE without a session', { method: 'DELETE' }],
  ['a DELETE of no session', { method: 'DELETE', headers: { 'mcp-session-id': 'unknown' } }],
  ['a method that is none', { method: 'PUT' }],
];

/** Headers that say something about the connection, or when. */
const OF_HTTP = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length']);

/** Serves for the length of one test. */
async function serving(kind: Kind, options: Mounted, body: (served: Served) => Promise<void>): Promise<void> {
  const served = await Served.open(kind, options);
  try {
    await body(served);
  } finally {
    await served.close();
  }
}

async function isClosed(served: Served): Promise<void> {
  const { status, headers, body } = await served.ask(modern('tools/list'));
  assert.is(status, 503, body);
  assert.match(new Map(headers).get('retry-after') ?? 'none', /^[1-9]\d*$/);
  assert.is(JSON.parse(body).error.code, ErrorCode.ShuttingDown);
}

test('a web request whose client is disconnected before its answer: 503 with Retry-After', async () => {
  const { response } = new WebRequest(new Request('http://localhost/mcp'));
  response.destroy();
  const { status, headers } = await response.answered;
  assert.equal([status, headers.get('retry-after')], [503, '1']);
});

for (const kind of ['fetch', 'node'] as const) {
  test(`server.${kind} answers what http() answers`, async () => {
    const [plain, mounted] = [await Served.open('http', OPTIONS), await Served.open(kind, OPTIONS)];
    for (const [what, asking] of REQUESTS) {
      const [expected, got] = [await plain.ask(asking), await mounted.ask(asking)];
      const relevant = (headers: Iterable<readonly [string, string]>): object =>
        Object.fromEntries([...headers].filter(([name]) => !OF_HTTP.has(name)).sort());
      assert.is(got.status, expected.status, what);
      assert.is(got.body, expected.body, what);
      assert.equal(relevant(got.headers), relevant(expected.headers), what);
    }
    await plain.close();
    await mounted.close();
  });

  test(`server.${kind} serves a session, from initialize to DELETE`, () =>
    serving(kind, OPTIONS, async (served) => {
      const opened = await served.ask({ body: initialize('2025-11-25') });
      const id = new Map(opened.headers).get('mcp-session-id') ?? '';
      assert.match(id, /^[\x21-\x7e]{22,}$/);
      const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' };
      const say = (body: object) => served.ask({ headers, body: { jsonrpc: '2.0', ...body } });
      assert.is((await say({ method: 'notifications/initialized' })).status, 202);
      assert.match(
        (await say({ id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'in' } } })).body,
        '"text":"in"',
      );
      const stream = await served.stream({ method: 'GET', headers });
      served.server.tool('new', {}, () => 'new');
      await served.clock.advance(100);
      await stream.until('list_changed');
      assert.is((await served.ask({ method: 'DELETE', headers })).status, 204);
      await stream.ended;
      assert.is((await say({ id: 2, method: 'ping' })).status, 404);
    }));

  test(`server.${kind}: closing the response cancels the request, and aborts the signal of its handler at once`, () =>
    serving(kind, OPTIONS, async (served) => {
      const stream = await served.stream(
        modern('tools/call', { params: { name: 'speak' }, meta: { progressToken: 1 } }),
      );
      await stream.until('"progress":1');
      const { ctx, finish } = await served.spoken();
      const gone = new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      const started = performance.now();
      stream.cancel();
      await gone;
      assertFigure(performance.now() - started, 500, 'the abort');
      finish();
      await settled();
      assert.equal(busy(served.server), []);
    }));

  test(`server.${kind}: a server that closes answers what is in flight, and refuses what comes later with 503`, () =>
    serving(kind, OPTIONS, async (served) => {
      const asked = served.ask(modern('tools/call', { params: { name: 'speak' } }));
      const { finish } = await served.spoken();
      const session =
        new Map((await served.ask({ body: initialize('2025-11-25') })).headers).get('mcp-session-id') ?? '';
      const stream = await served.stream({ method: 'GET', headers: { 'mcp-session-id': session } });
      const closed = served.server.close();
      await isClosed(served);
      finish();
      assert.match((await asked).body, '"text":"spoken"');
      await closed;
      await stream.ended;
      assert.match(stream.text, /retry: ?777\n/);
      await isClosed(served);
    }));
}

test('server.fetch: aborting the request cancels it too, before there is an answer and after', () =>
  serving('fetch', OPTIONS, async (served) => {
    for (const speaks of [false, true]) {
      const abort = new AbortController();
      const meta = speaks ? { progressToken: 1 } : {};
      const { headers = {}, body } = modern('tools/call', { params: { name: 'speak' }, meta });
      const asked = served.server.fetch(
        new Request('http://localhost/mcp', {
          method: 'POST',
          headers: {
            ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
            'content-type': 'application/json',
          },
          body: JSON.stringify(body),
          signal: abort.signal,
        }),
      );
      const { ctx, finish } = await served.spoken();
      if (speaks) await asked;
      abort.abort();
      await settled();
      assert.is(ctx.signal.aborted, true);
      finish();
      const response = await asked.catch(() => undefined);
      await response?.text().catch(() => '');
    }
    await settled();
    assert.equal(busy(served.server), []);
  }));

/** Lines of 16 KB: more than the memory that they may cost. */
const LINES = times(5_000, { quick: 3_500 });

test('server.fetch: a body without a reader costs bounded memory, and is aborted', () =>
  serving('fetch', { stallMs: 5_000 }, async (served) => {
    const { body } = await served.fetch(
      modern('tools/call', { params: { name: 'speak' }, meta: { [META.logLevel]: 'info', progressToken: 1 } }),
    );
    const { ctx, finish } = await served.spoken();
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let line = 0; line < LINES; line += 1) {
      ctx.log.info('x'.repeat(16_384));
      if (line % 100 === 0) await settled();
    }
    // Dropped messages are garbage, which is no cost of the unread body.
    collect();
    const grown = process.memoryUsage().heapUsed - before;
    assert.ok(grown < 48 * 2 ** 20, `${grown} bytes more`);
    await served.clock.advance(20_000);
    assert.is(ctx.signal.aborted, true);
    finish();
    const reader = body?.getReader();
    const end = await (async () => {
      while (reader && !(await reader.read()).done);
      return 'an end, as if it were whole';
    })().catch(() => 'broken off');
    assert.is(end, 'broken off');
  }));

test('server.node serves beside what else its server has, under any path, and says so when the body is gone', () =>
  serving('node', OPTIONS, async (served) => {
    const host: NodeServer = createNodeServer((request, response) => {
      if (request.url === '/tools/mcp') return served.server.node(request, response);
      if (request.url !== '/parsed') return void response.writeHead(404).end('not here');
      request.resume();
      request.once('end', () => served.server.node(request, response));
    });
    await once(host.listen(0, '127.0.0.1'), 'listening');
    const url = urlOf(host);
    assert.is((await ask(`${url}/tools/mcp`, modern('tools/list'))).status, 200);
    assert.is((await ask(`${url}/other`, modern('tools/list'))).status, 404);
    const parsed = await ask(`${url}/parsed`, modern('tools/list'));
    assert.match(await parsed.text(), 'body');
    assert.is(parsed.status, 500);
    host.closeAllConnections();
    host.close();
  }));

function urlOf(node: NodeServer): string {
  const address = node.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

/** The status of a list that is asked for by this name. */
async function statusAt(served: Served, url: string): Promise<number> {
  const { headers = {}, body } = modern('tools/list');
  const all = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
  const request = new Request(url, {
    method: 'POST',
    headers: [...all, ['content-type', 'application/json']],
    body: JSON.stringify(body),
  });
  return (await served.server.fetch(request)).status;
}

test('server.node: each handler runs in the async context of its own request, however many come at once', async () => {
  const context = new AsyncLocalStorage<string>();
  const server = createServer({ name: 'traced', version: '1.0.0' });
  server.tool('trace', {}, async () => {
    await undefined;
    return context.getStore() ?? 'none';
  });
  const node = createNodeServer((request, response) =>
    context.run(String(request.headers['x-trace']), () => server.node(request, response)),
  );
  const traced = async (trace: string): Promise<void> => {
    const asking = modern('tools/call', { params: { name: 'trace', arguments: {} }, headers: { 'x-trace': trace } });
    const answer = await ask(urlOf(node), asking);
    assert.match(await answer.text(), `"text":"${trace}"`);
  };
  try {
    await once(node.listen(0, '127.0.0.1'), 'listening');
    await Promise.all(Array.from({ length: 50 }, (_, index) => traced(`trace-${index}`)));
  } finally {
    node.close();
    node.closeAllConnections();
    await server.close();
  }
});

test('a mounted server without configured names serves only the names of this machine', () =>
  serving('fetch', {}, async (served) => {
    assert.is(await statusAt(served, 'http://localhost:3000/mcp'), 200);
    assert.is(await statusAt(served, 'http://mcp.example.com/mcp'), 403);
  }));

test('a mounted server serves its configured names, and no others', () =>
  serving('fetch', { allowedHosts: ['mcp.example.com'] }, async (served) => {
    assert.is(await statusAt(served, 'https://mcp.example.com/anywhere'), 200);
    assert.is(await statusAt(served, 'http://localhost/mcp'), 403);
  }));

test('options that a mounted server cannot have are refused when the server is made, not when the first client comes', () => {
  for (const options of [{ allowedOrigins: ['*'] }, { allowedHosts: ['https://mcp.example.com'] }, { maxExchanges: 0 }])
    assert.throws(
      () => createServer({ name: 'refused', version: '1.0.0', http: options }),
      /allowedOrigins|allowedHosts|maxExchanges/,
    );
});
