/** HTTP with SSE, as clients of 2024-11-05 speak it: one stream for all that the server says, and an endpoint for what the client says. */
import { once } from 'node:events';
import { createServer as createNodeServer } from 'node:http';
import * as assert from 'uvu/assert';
import { createServer } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { wireChecker } from '../../harness/wire.ts';
import { change, crowd, LEGACY, PING, serving } from './session.ts';
import { type Answer, ask, type Headers, initialize, type Message, type Stage, textIn } from './support.ts';

const test = suite('old sse');

interface OldClient {
  readonly stream: Answer;
  /** Where messages are posted to. */
  readonly endpoint: string;
  /** Posts a message. @returns the status */
  post(body: unknown): Promise<number>;
  /** The next message on the stream. */
  next(): Promise<Message>;
  call(id: string | number, name: string, args?: object, meta?: object): Promise<number>;
}

/** Opens a stream, and reads where to post to. @param opening headers of the GET only */
async function connect(url: string, headers: Headers = {}, opening: Headers = {}): Promise<OldClient> {
  const stream = await ask(url, { method: 'GET', headers: { ...headers, ...opening } });
  assert.is(stream.status, 200);
  assert.match(stream.headers['content-type'] ?? '', /^text\/event-stream/);
  const { event, data = '' } = await stream.events.next();
  assert.is(event, 'endpoint');
  const endpoint = new URL(data, url).href;
  const post = async (body: unknown): Promise<number> => {
    const answer = await ask(endpoint, { body, headers });
    await answer.text();
    return answer.status;
  };
  return {
    stream,
    endpoint,
    post,
    async next() {
      const { event: name = 'message', data: text = '' } = await stream.events.next();
      assert.is(name, 'message');
      return JSON.parse(text);
    },
    call: (id, name, args = {}, _meta) =>
      post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, ...(_meta && { _meta }) } }),
  };
}

async function opened(url: string, revision = '2024-11-05', headers: Headers = {}): Promise<OldClient> {
  const client = await connect(url, headers);
  assert.is(await client.post(initialize(revision)), 202);
  assert.is((await client.next()).result?.protocolVersion, revision);
  assert.is(await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' }), 202);
  return client;
}

/** Waits until the server has noticed that a client disconnected, by round trips of another. */
async function until(fact: () => boolean, url: string): Promise<void> {
  for (let trip = 0; trip < 100 && !fact(); trip += 1) await (await ask(url, { body: PING })).text();
  assert.ok(fact());
}

test('GET opens a stream that first names the endpoint, with an id of at least 128 random bits', () =>
  serving(async ({ url }) => {
    const ids: string[] = [];
    const streams: Answer[] = [];
    await crowd(100, 16, async () => {
      const { stream, endpoint } = await connect(url);
      const { pathname, searchParams, origin } = new URL(endpoint);
      assert.is(pathname, '/mcp');
      assert.is(origin, new URL(url).origin);
      ids.push(searchParams.get('sse') ?? '');
      streams.push(stream);
    });
    assert.is(new Set(ids).size, 100);
    for (const id of ids) assert.match(id, /^[\w-]{22,}$/);
    for (const { headers, cut } of streams) {
      assert.match(String(headers['cache-control']), /no-cache/);
      assert.is(headers['x-accel-buffering'], 'no');
      cut();
    }
  }));

/** What clients have been seen to send with the GET that opens HTTP+SSE. */
const OPENINGS: readonly (readonly [who: string, headers: Headers])[] = [
  ['the official SDKs', {}],
  ['the Vercel AI SDK', { 'mcp-protocol-version': '2025-06-18' }],
  ['a client of the latest session revision', { 'mcp-protocol-version': '2025-11-25' }],
  ['supergateway', { accept: '*/*' }],
  ['supergateway with a revision', { accept: '*/*', 'mcp-protocol-version': '2024-11-05' }],
];
for (const [who, opening] of OPENINGS)
  test(`a GET without a session opens HTTP+SSE: as ${who} sends it`, () =>
    serving(async ({ url }) => {
      for (const at of [url, new URL('/sse', url).href]) {
        const client = await connect(at, {}, opening);
        assert.is(new URL(client.endpoint).pathname, new URL(at).pathname);
        assert.is(await client.post(initialize('2024-11-05')), 202);
        assert.is((await client.next()).result?.protocolVersion, '2024-11-05');
        client.stream.cut();
      }
    }));

/** How a client forms the address for its POST requests from the address of the stream and the endpoint. */
const RESOLVERS: readonly (readonly [
  who: string,
  agent: string,
  resolve: (endpoint: string, url: string) => string,
])[] = [
  ['RFC 3986, as most clients do', 'node', (endpoint, url) => new URL(endpoint, url).href],
  // rmcp: a reference of a query keeps the path; anything else replaces it.
  [
    'the Rust SDK',
    'reqwest',
    (endpoint, url) => {
      const { origin, pathname } = new URL(url);
      return endpoint.startsWith('?') ? `${origin}${pathname}${endpoint}` : `${origin}/${endpoint.replace(/^\//, '')}`;
    },
  ],
  ['the Java SDK', 'Java-http-client/21.0.2', (endpoint, url) => `${new URL(url).origin}${endpoint}`],
  ['WebClient of Spring', 'ReactorNetty/1.2.1', (endpoint, url) => `${new URL(url).origin}${endpoint}`],
];
for (const path of ['/mcp', '/tools/mcp', '/sse', '/a/b/', '/'])
  for (const [who, agent, resolve] of RESOLVERS)
    test(`the endpoint of a stream at ${path} leads back to it, as ${who} resolves it`, () =>
      serving(
        async ({ url }) => {
          const stream = await ask(url, { method: 'GET', headers: { 'user-agent': agent } });
          const { data = '' } = await stream.events.next();
          const answer = await ask(resolve(data, url), { body: initialize('2024-11-05') });
          await answer.text();
          assert.is(answer.status, 202);
          assert.is(resolve(data, url).split('?')[0], url);
          stream.cut();
        },
        { path },
      ));

test('the endpoint repeats the query of its stream, by which an author may authenticate', () =>
  serving(
    async ({ url }) => {
      for (const [query, kept] of [
        ['?key=s3cret', '?key=s3cret&sse='],
        ['?key=s3cret&', '?key=s3cret&sse='],
        ['?sse=mine&key=s3cret&next=%2Fa?b', '?key=s3cret&next=%2Fa?b&sse='],
      ] as const) {
        const client = await connect(`${url}${query}`);
        assert.ok(client.endpoint.startsWith(`${url}${kept}`), client.endpoint);
        assert.is(await client.post(initialize('2024-11-05')), 202);
        assert.is((await client.next()).result?.protocolVersion, '2024-11-05');
        client.stream.cut();
      }
    },
    { authenticate: ({ query }) => (new URLSearchParams(query).get('key') === 's3cret' ? 'ada' : undefined) },
  ));

test('behind a proxy that removes a prefix, the endpoint leads back through the prefix', () =>
  serving(async ({ url }) => {
    const outside = new URL('/tools/mcp', url).href;
    const stream = await ask(url, { method: 'GET' });
    const { data = '' } = await stream.events.next();
    assert.is(new URL(data, outside).pathname, '/tools/mcp');
    stream.cut();
  }));

test('a GET that belongs to Streamable HTTP opens no HTTP+SSE: with a session, an event to go on from, or a revision without it', () =>
  serving(async ({ url }) => {
    for (const [headers, status] of [
      [{ 'mcp-session-id': 'unknown' }, 404],
      [{ 'last-event-id': 'abcdefghijkl_3' }, 400],
      [{ 'mcp-protocol-version': '2026-07-28' }, 405],
      [{ 'mcp-protocol-version': '1999-01-01' }, 400],
      [{ accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }, 406],
      [{ accept: undefined }, 406],
    ] as const) {
      const answer = await ask(url, { method: 'GET', headers });
      await answer.text();
      assert.is(answer.status, status, JSON.stringify(headers));
    }
  }));

test('a browser learns that the address is for MCP clients', () =>
  serving(async ({ url }) => {
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const answer = await ask(url, { method: 'GET', headers: { accept } });
    assert.is(answer.status, 406);
    assert.match(await answer.text(), 'this address is an MCP server, and shows no page. Give it to an MCP client');
  }));

test('/sse beside the endpoint serves HTTP+SSE whatever else its GET says, and nothing else', () =>
  serving(
    async ({ url, sessions }) => {
      const at = new URL('sse', url).href;
      assert.is(new URL(at).pathname, '/tools/sse');
      for (const headers of [
        { 'mcp-protocol-version': '2026-07-28' },
        { 'mcp-protocol-version': '2099-01-01' },
        { 'mcp-session-id': 'unknown', 'last-event-id': 'abcdefghijkl_3' },
      ]) {
        const client = await connect(at, {}, headers);
        assert.is(await client.post(initialize('2024-11-05')), 202);
        assert.is((await client.next()).result?.protocolVersion, '2024-11-05');
        client.stream.cut();
      }
      await until(() => sessions() === 0, url);
      // What a client finds out by: it tries Streamable HTTP first, and goes on with a GET.
      for (const method of ['POST', 'DELETE', 'PUT']) {
        const answer = await ask(at, { method, body: initialize('2025-11-25') });
        assert.is(answer.status, 405, method);
        assert.is(answer.headers.allow, 'GET, POST, OPTIONS');
        assert.match(await answer.text(), '/tools/mcp');
      }
      assert.is((await ask(at, { method: 'GET', headers: { accept: 'application/json' } })).status, 406);
      assert.is(sessions(), 0);
    },
    { path: '/tools/mcp' },
  ));

test('an endpoint at /sse serves every revision', () =>
  serving(
    async ({ url }) => {
      const client = await opened(url);
      assert.is((await ask(url, { body: initialize('2025-11-25') })).status, 200);
      client.stream.cut();
    },
    { path: '/sse' },
  ));

test('a mounted server serves HTTP+SSE on a path that ends in /sse, and its endpoint leads back there', async () => {
  const server = createServer({ name: 'mounted', version: '1.0.0' });
  const host = createNodeServer((request, response) => {
    // As Express does under app.use('/deep', …).
    const originalUrl = request.url ?? '';
    request.url = originalUrl.replace(/^\/deep/, '') || '/';
    server.node(Object.assign(request, { originalUrl }), response);
  });
  await once(host.listen(0, '127.0.0.1'), 'listening');
  const address = host.address();
  const base = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  for (const path of ['/deep/sse', '/sse', '/deep/mcp']) {
    const client = await connect(
      `${base}${path}`,
      {},
      path === '/deep/mcp' ? {} : { 'mcp-protocol-version': '2026-07-28' },
    );
    assert.is(new URL(client.endpoint).pathname, path);
    assert.is(await client.post(initialize('2024-11-05')), 202);
    assert.is((await client.next()).result?.protocolVersion, '2024-11-05');
    client.stream.cut();
  }
  assert.is((await ask(`${base}/deep/sse`, { body: initialize('2025-11-25') })).status, 405);
  assert.is((await ask(`${base}/deep/mcp`, { body: initialize('2025-11-25') })).status, 200);
  const { status, body } = await server.fetch(
    new Request('http://localhost/api/sse', { headers: { accept: 'text/event-stream' } }),
  );
  assert.is(status, 200);
  const reader = body?.getReader();
  assert.match(new TextDecoder().decode((await reader?.read())?.value), 'data: ?sse=');
  await reader?.cancel();
  host.closeAllConnections();
  host.close();
  await server.close();
});

test('the endpoint lies at the path that the author chose', () =>
  serving(
    async ({ url }) => {
      const { endpoint, stream } = await connect(url);
      assert.is(new URL(endpoint).pathname, '/tools/mcp');
      stream.cut();
    },
    { path: '/tools/mcp' },
  ));

test('a POST is answered with 202 and no body, and its answer comes as a message on the stream', () =>
  serving(async ({ url, sessions }) => {
    const client = await connect(url);
    const answer = await ask(client.endpoint, { body: initialize('2024-11-05', 'open') });
    assert.equal([answer.status, await answer.text()], [202, '']);
    const { id, result } = await client.next();
    assert.equal([id, result?.protocolVersion], ['open', '2024-11-05']);
    assert.is(sessions(), 1);
    client.stream.cut();
  }));

for (const revision of LEGACY.slice(0, 3)) {
  test(`a ${revision} conversation fits its schema`, () =>
    serving(async (stage) => {
      const client = await connect(stage.url);
      const check = wireChecker(revision);
      const say = async (message: object): Promise<void> => {
        check('in', JSON.stringify(message));
        assert.is(await client.post(message), 202);
      };
      const hear = async (): Promise<Message> => {
        const message = await client.next();
        check('out', JSON.stringify(message));
        return message;
      };
      await say(initialize(revision));
      await hear();
      await say({ jsonrpc: '2.0', method: 'notifications/initialized' });
      await say({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      assert.ok((await hear()).result?.tools);
      const params = { name: 'count', arguments: { to: 3 }, _meta: { progressToken: 'p' } };
      await say({ jsonrpc: '2.0', id: 2, method: 'tools/call', params });
      for (const done of [1, 2, 3]) assert.is((await hear()).params?.progress, done);
      assert.is(textIn(await hear()), 'counted to 3');
      await say({ jsonrpc: '2.0', id: 3, method: 'resources/subscribe', params: { uri: 'notes://a' } });
      await hear();
      await change(stage, 'notes://a');
      assert.is((await hear()).params?.uri, 'notes://a');
      await say({ jsonrpc: '2.0', id: 4, method: 'tools/none' });
      assert.is((await hear()).error?.code, -32601);
      client.stream.cut();
    }));
}

test('answers to several requests share the stream, each as it is ready', () =>
  serving(async ({ url, held }) => {
    const client = await opened(url);
    await client.call('slow', 'held', { key: 'a' });
    const { finish } = await held('a');
    await client.call('fast', 'echo', { text: 'hi' });
    assert.is((await client.next()).id, 'fast');
    finish();
    assert.is((await client.next()).id, 'slow');
    client.stream.cut();
  }));

test('clients with equal ids hear nothing of each other', () =>
  serving(async ({ url, sessions }) => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => opened(url)));
    assert.is(sessions(), 10);
    for (let id = 1; id <= 5; id += 1)
      await Promise.all(clients.map((client, index) => client.call(id, 'echo', { text: `client ${index}` })));
    for (const [index, client] of clients.entries()) {
      for (let id = 1; id <= 5; id += 1) assert.is(textIn(await client.next()), `client ${index}`);
      client.stream.cut();
    }
  }));

test('a batch of 2025-03-26 is answered as one message event', () =>
  serving(async ({ url }) => {
    const client = await opened(url, '2025-03-26');
    assert.is(await client.post([PING, { ...PING, id: 2 }]), 202);
    const batch: unknown = await client.next();
    assert.ok(Array.isArray(batch) && batch.length === 2);
    client.stream.cut();
  }));

test('a client that drops its stream ends its session, and what runs in it', () =>
  serving(async ({ url, held, sessions }) => {
    const [client, other] = [await opened(url), await opened(url)];
    await client.call(1, 'held', { key: 'a' });
    const { ctx } = await held('a');
    client.stream.cut();
    await until(() => sessions() === 1, url);
    assert.ok(ctx.signal.aborted);
    assert.is(await client.post(PING), 404);
    assert.is(await other.post(PING), 202);
    assert.equal((await other.next()).result, {});
    other.stream.cut();
  }));

test('a client that drops its stream before initialize leaves nothing behind', () =>
  serving(async ({ url, clock, sessions }) => {
    // The actors of a new server become passive first.
    await clock.advance(60_000);
    const before = clock.timers;
    const client = await connect(url);
    assert.is(sessions(), 0);
    client.stream.cut();
    let status = 202;
    for (let trip = 0; trip < 100 && status === 202; trip += 1)
      status = await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    assert.is(status, 404);
    assert.is(await client.post(initialize('2024-11-05')), 404);
    // Timers of the server itself come and go.
    await clock.advance(60_000);
    assert.is(clock.timers, before);
    assert.is(sessions(), 0);
  }));

test('streams that their clients have dropped no longer count against maxExchanges', () =>
  serving(
    async ({ url, sessions }) => {
      for (let turn = 0; turn < 10; turn += 1) {
        const client = await opened(url);
        client.stream.cut();
        await until(() => sessions() === 0, url);
      }
    },
    { maxExchanges: 4 },
  ));

test('a POST to an unknown stream is 404, the same for every id', () =>
  serving(async ({ url }) => {
    const client = await opened(url);
    client.stream.cut();
    const seen = new Set<string>();
    const id = new URL(client.endpoint).searchParams.get('sse') ?? '';
    for (const other of ['x'.repeat(22), 'x', `${id}x`, '__proto__', 'constructor', '%00']) {
      const answer = await ask(`${url}?sse=${other}`, { body: initialize('2024-11-05') });
      seen.add(`${answer.status} ${await answer.text()}`);
    }
    assert.is(seen.size, 1, [...seen].join('\n'));
    assert.match([...seen].join(), /^404 /);
  }));

test('a stream serves only the principal that opened it', () =>
  serving(
    async ({ url }) => {
      const alice = await opened(url, '2024-11-05', { authorization: 'alice' });
      const faces = new Set<string>();
      for (const target of [alice.endpoint, `${url}?sse=${'x'.repeat(22)}`]) {
        const answer = await ask(target, { body: PING, headers: { authorization: 'bob' } });
        faces.add(`${answer.status} ${await answer.text()}`);
      }
      assert.is(faces.size, 1, [...faces].join('\n'));
      assert.match([...faces].join(), /^404 /);
      const unknown = await ask(alice.endpoint, { body: PING });
      assert.is(unknown.status, 401);
      await unknown.text();
      assert.is((await ask(url, { method: 'GET' })).status, 401);
      await alice.call(1, 'whoami');
      assert.is(textIn(await alice.next()), 'alice 2024-11-05');
      alice.stream.cut();
    },
    { authenticate: ({ header }) => header('authorization') },
  ));

test('a message that cannot be read is reported, and the stream continues', () =>
  serving(async ({ url }) => {
    const client = await opened(url);
    for (const [body, code] of [
      ['{"jsonrpc":"2.0"', -32700],
      [{ jsonrpc: '2.0', id: 9 }, -32600],
    ] as const) {
      const answer = await ask(client.endpoint, { body });
      const text = await answer.text();
      assert.ok([202, 400].includes(answer.status), String(answer.status));
      // As an answer to the POST, or as a message.
      const told: Message = answer.status === 400 ? JSON.parse(text) : await client.next();
      assert.is(told.error?.code, code);
    }
    await client.post(PING);
    assert.equal((await client.next()).result, {});
    client.stream.cut();
  }));

test('beyond maxSessions an initialize is refused on its stream', () =>
  serving(
    async ({ url, sessions }: Stage) => {
      const [first, second] = [await opened(url), await connect(url)];
      assert.is(await second.post(initialize('2024-11-05')), 202);
      const { error } = await second.next();
      assert.is(error?.code, -31001);
      assert.match(error?.message ?? '', /maxSessions/);
      assert.is(sessions(), 1);
      first.stream.cut();
      second.stream.cut();
    },
    { server: { limits: { maxSessions: 1 } } },
  ));

test('a silent stream is kept alive with comments', () =>
  serving(
    async ({ url, clock }) => {
      const { stream } = await opened(url);
      for (const n of [1, 2]) {
        await clock.advance(1_000);
        await stream.events.comment(n);
      }
      stream.cut();
    },
    { keepAliveMs: 1_000 },
  ));

test('streams are ended properly when the server closes, after the answers that run', () =>
  serving(async (stage) => {
    const client = await opened(stage.url);
    await client.call(1, 'held', { key: 'a' });
    const { finish } = await stage.held('a');
    const closed = stage.close();
    finish('before I go');
    await closed;
    assert.is(textIn(await client.next()), 'before I go');
    await client.stream.events.rest();
  }));
