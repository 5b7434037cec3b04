/** What servers and proxies do between the lines of the specification: a client over HTTP and HTTP+SSE goes on, and says what it met. */
import type { Socket } from 'node:net';
import { createServer } from 'troupe';
import { type ConnectOptions, connect, ErrorResponse } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { jsonResponse, type RawRequest, rawServer, response, STATUSES } from '../harness/raw-server.ts';
import { until } from '../harness/wait.ts';
import { clientError } from './fixture.ts';
import { EVENTS, events, legacy, messageOf, NotingClock, resultOf, sseServer, using } from './raw-peer.ts';

const test = suite('peers over HTTP');

const DONE = [{ type: 'text', text: 'done' }];
const quiet: ConnectOptions = { eras: 'legacy', log: () => {} };
/** The head of a stream that stays open. */
const OPEN = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n';

/** A token that changes at the sign-in. */
function signIn(): { readonly auth: NonNullable<ConnectOptions['auth']>; signIns: number } {
  let token = 'one';
  const state = {
    signIns: 0,
    auth: {
      headers: () => ({ authorization: `Bearer ${token}` }),
      async authorize() {
        state.signIns += 1;
        token = 'two';
      },
    },
  };
  return state;
}

// Streams

test('an event with an id and without data lets the client poll on, as does one with empty data', async () => {
  let asked = 0;
  let polls = 0;
  await using(
    ({ method, headers }, { method: name, id }) => {
      if (name === 'tools/call') {
        asked = id ?? 0;
        return events('retry: 200\nid: e0\n\n');
      }
      if (method !== 'GET' || headers['last-event-id'] === undefined) return undefined;
      polls += 1;
      if (polls < 8) return events(`id: e${polls}\n\n`);
      return events(`data: ${JSON.stringify(resultOf({ id: asked, method: 'tools/call' }))}\n\n`);
    },
    async (client, server) => {
      assert.equal((await client.call('add')).content, DONE);
      const ids = server.requests.map(({ headers }) => headers['last-event-id']).filter((id) => id !== undefined);
      assert.equal(ids, ['e0', 'e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7']);
    },
  );
});

for (const end of ['', '\n'])
  test(`a response whose last event ends with ${JSON.stringify(end)} is read, and a cut event is resumed`, async () => {
    let id = 0;
    await using(
      ({ method, headers }, message) => {
        const result = JSON.stringify(resultOf({ id, method: 'tools/call' }));
        if (message.method === 'tools/call') {
          id = message.id ?? 0;
          return events(`retry: 200\nid: e0\n\ndata: ${result.slice(0, -5)}${end}`);
        }
        if (method === 'GET' && headers['last-event-id'] === 'e0') return events(`data: ${result}${end}`);
        return undefined;
      },
      async (client) => assert.equal((await client.call('add')).content, DONE),
    );
  });

test('an id of a session that a proxy has repeated is one id', () =>
  using(
    (_, message) =>
      message.method === 'initialize'
        ? jsonResponse(resultOf(message), 200, { 'mcp-session-id': 's1\r\nMcp-Session-Id: s1' })
        : undefined,
    async (client, server) => {
      await client.call('add');
      assert.is(server.requests.at(-1)?.headers['mcp-session-id'], 's1');
    },
  ));

for (const [what, response, code, message] of [
  ['a null error', { result: { content: DONE }, error: null }, undefined, undefined],
  ['a null result', { result: null, error: { code: -32_603, message: 'down' } }, -32_603, /: down/],
  [
    'a result and an error',
    { result: { content: DONE }, error: { code: -32_603, message: 'down' } },
    -32_603,
    /: down/,
  ],
  ['a text as its error', { error: 'down' }, 0, /: down/],
  ['a text as its code', { error: { code: '-32000', message: 'down' } }, -32_000, /: down/],
] as const)
  test(`a response with ${what} is ${code === undefined ? 'its result' : 'an error in its words'}`, () =>
    using(
      (_, { method, id }) => (method === 'tools/call' ? jsonResponse({ jsonrpc: '2.0', id, ...response }) : undefined),
      async (client) => {
        if (code === undefined) return assert.equal((await client.call('add')).content, DONE);
        const error = await clientError(client.call('add'));
        assert.is(error instanceof ErrorResponse ? error.code : undefined, code);
        assert.match(error.message, message);
      },
    ));

test('S-79 an id of 1 MB is not sent again, and the log says so once', async () => {
  const logged: string[] = [];
  await using(
    (_, { method }) => (method === 'tools/call' ? events(`id: ${'x'.repeat(1_000_000)}\n\n`.repeat(2)) : undefined),
    async (client, server) => {
      const error = await clientError(client.call('add'));
      assert.equal([error.reason, error.carriedOut], ['closed', 'unknown']);
      assert.not(server.requests.some(({ headers }) => headers['last-event-id'] !== undefined));
      assert.is(logged.filter((line) => line.includes('cannot be resumed')).length, 1);
    },
    { log: (_level, message) => logged.push(message) },
  );
});

for (const [what, rejected] of [
  ['404', response(404)],
  ['410', response(410)],
  ['400', response(400, {}, 'No valid session ID provided')],
  ['401 without a challenge', response(401, {}, 'Unauthorized: Session not found')],
  ['a page', response(200, { 'content-type': 'text/html' }, '<p>hello')],
] as const)
  test(`the stream of a session that does not open again (${what}) makes the cached lists old`, async () => {
    let stream: Socket | undefined;
    let restarted = false;
    let rejections = 0;
    const server = await rawServer((request, socket) => {
      const message = messageOf(request);
      if (message.method === 'initialize' && restarted)
        return jsonResponse(resultOf(message), 200, { 'mcp-session-id': 's2' });
      if (restarted && request.headers['mcp-session-id'] !== 's2') {
        if (request.method === 'GET') rejections += 1;
        return request.method === 'GET' ? rejected : response(404);
      }
      if (request.method === 'GET') {
        stream = socket;
        return `${OPEN}retry: 200\n\n`;
      }
      if (message.method !== 'tools/list') return legacy(request);
      const tools = [{ name: restarted ? 'after' : 'before', inputSchema: { type: 'object' } }];
      return jsonResponse({ jsonrpc: '2.0', id: message.id, result: { tools } });
    });
    const client = await connect(`${server.url}/mcp`, quiet);
    assert.is((await client.tools())[0]?.name, 'before');
    await until(() => stream !== undefined);
    restarted = true;
    stream?.destroy();
    await until(() => rejections > 0);
    const changed = async (): Promise<boolean> => (await client.tools())[0]?.name === 'after';
    while (!(await changed())) await new Promise((resolve) => setImmediate(resolve));
    await client.close();
    await server.close();
  });

for (const [what, status, expected] of [
  ['405', 405, 'HTTP 405'],
  ['400', 400, 'HTTP 400'],
] as const)
  test(`a call whose stream the server does not continue (${what}) fails at once, and says why`, () =>
    using(
      ({ method, headers }, { method: name }) => {
        if (name === 'tools/call') return events('retry: 200\nid: e0\n\n');
        return method === 'GET' && headers['last-event-id'] !== undefined ? response(status) : undefined;
      },
      async (client, server) => {
        const error = await clientError(client.call('add'));
        assert.equal([error.reason, error.carriedOut], ['closed', 'unknown']);
        assert.match(error.message, expected);
        assert.is(server.requests.filter(({ headers }) => headers['last-event-id'] === 'e0').length, 1);
      },
    ));

test('a stream of a session that the server closes at once, each time, opens more and more rarely', async () => {
  /** The delays before each further attempt. */
  const delaysOf = async (text: string): Promise<number[]> => {
    const clock = new NotingClock();
    let opened = 0;
    let before = 0;
    const delays: number[] = [];
    await using(
      ({ method }) => {
        if (method !== 'GET') return undefined;
        opened += 1;
        before = clock.delays.length;
        return events(text.replace('ID', String(opened)));
      },
      async () => {
        for (let attempt = 1; attempt <= 12; attempt += 1) {
          await until(() => opened === attempt, `attempt ${attempt}`);
          await until(() => clock.delays.length > before, 'the end of the stream');
          const delay = clock.delays[before] ?? 0;
          delays.push(delay);
          await clock.advance(delay);
        }
      },
      { clock },
    );
    return delays;
  };
  const idle = await delaysOf('id: 1\ndata:\n\n');
  assert.is(idle[0], 1_000);
  assert.ok((idle.at(-1) ?? 0) >= 15_000, idle.join());
  // A server that lets its client poll sends another id each time.
  const polled = await delaysOf('id: ID\ndata:\n\n');
  assert.ok(Math.max(...polled) <= 2_000, polled.join());
});

test('heartbeats that are no messages fail no call, and fill no log', async () => {
  const logged: string[] = [];
  await using(
    (_, message) =>
      message.method === 'tools/call'
        ? events(`${'data: {"type":"heartbeat"}\n\n'.repeat(300)}data: ${JSON.stringify(resultOf(message))}\n\n`)
        : undefined,
    async (client) => {
      assert.equal((await client.call('add')).content, DONE);
      assert.ok(logged.length > 0 && logged.length < 30, `${logged.length} lines`);
    },
    { log: (_level, message) => logged.push(message) },
  );
});

// Content

for (const [what, type] of [
  ['no content type', undefined],
  ['application/json-rpc', 'application/json-rpc'],
  ['text/json', 'text/json; charset=utf-8'],
] as const)
  test(`a message with ${what} is read`, () =>
    using(
      (_, message) =>
        message.method === 'tools/call'
          ? response(200, type === undefined ? {} : { 'content-type': type }, JSON.stringify(resultOf(message)))
          : undefined,
      async (client) => assert.equal((await client.call('add')).content, DONE),
    ));

// Codings

for (const coding of ['gzip', 'deflate'])
  test(`a response that names ${coding} and is not encoded is read, and the log says so once`, async () => {
    const logged: string[] = [];
    await using(
      (_, message) =>
        message.method === 'tools/call'
          ? jsonResponse(resultOf(message), 200, { 'content-encoding': coding })
          : undefined,
      async (client) => {
        for (let index = 0; index < 3; index += 1) assert.equal((await client.call('add')).content, DONE);
        assert.is(logged.filter((line) => line.includes(`content coding ${coding}`)).length, 1);
      },
      { log: (_level, message) => logged.push(message) },
    );
  });

for (const coding of ['gzip', 'deflate', 'br'])
  test(`an encoded response (${coding}) that ends before its first byte fails its call`, async () => {
    const server = await rawServer((request, socket) => {
      if (messageOf(request).method !== 'tools/call') return legacy(request);
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: ${coding}\r\ncontent-length: 9\r\n\r\n`;
      socket.write(head, () => socket.destroy());
      return undefined;
    });
    const client = await connect(`${server.url}/mcp`, quiet);
    const error = await clientError(client.call('add'));
    assert.equal([error.reason, error.carriedOut], ['closed', 'unknown']);
    await client.close();
    await server.close();
  });

// Redirects

for (const status of [301, 302, 303, 307, 308])
  test(`a GET is redirected with ${status}, over HTTP and HTTP+SSE`, async () => {
    let opened = 0;
    await using(
      ({ method, path }) => {
        if (method !== 'GET') return undefined;
        if (path === '/mcp') return response(status, { location: '/mcp/' });
        opened += 1;
        return response(200, EVENTS, ': open\n\n');
      },
      async () => until(() => opened > 0),
    );
    const server = await sseServer(({ method, path }) =>
      method === 'GET' && path === '/sse' ? response(status, { location: '/sse/' }) : undefined,
    );
    const client = await connect(`${server.url}/sse`, quiet);
    assert.equal((await client.call('add')).content, DONE);
    await client.close();
    await server.close();
  });

for (const status of [302, 303])
  test(`a POST is not redirected with ${status}: the server may have carried it out`, () =>
    using(
      (_, { method }) => (method === 'tools/call' ? response(status, { location: '/mcp/' }) : undefined),
      async (client, server) => {
        assert.is((await clientError(client.call('add'))).reason, 'refused');
        assert.not(server.requests.some(({ path }) => path === '/mcp/'));
      },
    ));

// Sign-in

test('the answer to a request of the server that is rejected with 401 is sent again with the next token', async () => {
  const { auth } = signIn();
  let valid = 'one';
  let call: { readonly socket: Socket; readonly id: number } | undefined;
  const server = await rawServer((request, socket) => {
    const message = messageOf(request);
    if (request.headers.authorization !== `Bearer ${valid}`) return response(401, { 'www-authenticate': 'Bearer' });
    if (message.method === 'tools/call' && message.id !== undefined) {
      call = { socket, id: message.id };
      valid = 'two';
      const params = { message: 'Which?', requestedSchema: { type: 'object', properties: {} } };
      const question = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params };
      return `${OPEN}data: ${JSON.stringify(question)}\n\n`;
    }
    if (call && String(message.id) === 'q') {
      call.socket.write(`data: ${JSON.stringify(resultOf({ id: call.id, method: 'tools/call' }))}\n\n`);
      return response(202);
    }
    return legacy(request);
  });
  const client = await connect({ url: `${server.url}/mcp`, auth }, { ...quiet, elicit: () => ({}) });
  assert.equal((await client.call('add')).content, DONE);
  const answers = server.requests.filter((request) => String(messageOf(request).id) === 'q');
  assert.equal(
    answers.map(({ headers }) => headers.authorization),
    ['Bearer one', 'Bearer two'],
  );
  await client.close();
  await server.close();
});

for (const status of [400, 500, 999])
  test(`the log names an answer that the server rejects with ${status}`, async () => {
    const logged: string[] = [];
    let asks = true;
    await using(
      (_, message) => {
        if (String(message.id) === 'q') return response(status, {}, 'no');
        if (message.method !== 'tools/call' || !asks) return undefined;
        asks = false;
        const question = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'x' } };
        return `${OPEN}data: ${JSON.stringify(question)}\n\n`;
      },
      async (client) => {
        const call = clientError(client.call('add', {}, { timeoutMs: 60_000 }));
        await until(() => logged.some((line) => line.includes(`answer to a request of the server was lost`)));
        assert.ok(logged.some((line) => line.includes(`HTTP ${status}: "no"`)));
        assert.equal((await client.call('add')).content, DONE);
        await client.close();
        await call;
      },
      { elicit: () => ({}), log: (_level, message) => logged.push(message) },
    );
  });

test('a token that ends with a line break, as in a file, is sent without it', async () => {
  const server = await rawServer(legacy);
  const auth = { headers: () => ({ authorization: 'Bearer abc\n' }), authorize: async () => {} };
  const client = await connect({ url: `${server.url}/mcp`, auth }, quiet);
  assert.is(server.requests[0]?.headers.authorization, 'Bearer abc');
  await client.close();
  await server.close();
});

// The probe

test('a probe that is rejected with 403 shows a legacy server', () =>
  using(
    (_, { method }) => (method === 'server/discover' ? response(403) : undefined),
    async (client) => assert.is(client.server.era, 'legacy'),
    { eras: 'auto' },
  ));

for (const [what, initialize] of [
  ['a page', response(200, { 'content-type': 'text/html' }, '<p>hello')],
  ['500', response(500, {}, 'boom')],
  ['405', response(405)],
] as const)
  test(`if the probe and initialize (${what}) fail, the error names both`, async () => {
    const server = await rawServer((request) => {
      if (request.method !== 'POST') return response(405);
      return messageOf(request).method === 'initialize' ? initialize : response(418, {}, 'teapot');
    });
    const { message } = await clientError(connect(`${server.url}/mcp`, { log: () => {}, connectMs: 5_000 }));
    assert.match(message, /Before that, the response to "server\/discover" was HTTP 418: "teapot"$/);
    assert.match(message, what === 'a page' ? '<p>hello' : `HTTP ${what}`);
    await server.close();
  });

// Lost sessions

test('a status of 500 that names the session opens a new one: a call reports unknown, a read is repeated', async () => {
  let session = 's1';
  await using(
    (request, message) => {
      if (message.method === 'initialize') return jsonResponse(resultOf(message), 200, { 'mcp-session-id': session });
      if (request.method !== 'POST') return response(405);
      return request.headers['mcp-session-id'] === session ? undefined : response(500, {}, 'Session not found');
    },
    async (client, server) => {
      const calls = (): number => server.requests.filter((each) => messageOf(each).method === 'tools/call').length;
      session = 's2';
      assert.is((await clientError(client.call('add'))).carriedOut, 'unknown');
      assert.equal((await client.call('add')).content, DONE);
      assert.is(calls(), 2);
      session = 's3';
      await client.tools({ fresh: true });
    },
  );
});

for (const [what, signsIn] of [
  ['without `auth`', false],
  ['with `auth`', true],
] as const)
  test(`a client ${what} whose session gets 401 with a challenge opens a new one, unless that gets 401, too`, async () => {
    let session = 's1';
    let closed = false;
    const server = await rawServer((request) => {
      const message = messageOf(request);
      const rejected = response(401, { 'www-authenticate': 'Bearer error="invalid_token"' });
      if (closed) return rejected;
      if (message.method === 'initialize') return jsonResponse(resultOf(message), 200, { 'mcp-session-id': session });
      return request.headers['mcp-session-id'] === session ? legacy(request) : rejected;
    });
    const state = signIn();
    const target = signsIn ? { url: `${server.url}/mcp`, auth: state.auth } : { url: `${server.url}/mcp` };
    const client = await connect(target, quiet);
    const count = (name: string): number =>
      server.requests.filter((request) => messageOf(request).method === name).length;
    session = 's2';
    assert.equal((await client.call('add')).content, DONE);
    assert.is(count('initialize'), 2);
    assert.is(state.signIns, signsIn ? 1 : 0);
    closed = true;
    const before = server.requests.length;
    assert.is((await clientError(client.call('add'))).reason, 'unauthorized');
    assert.ok(server.requests.length - before < 12, `${server.requests.length - before} requests`);
    await client.close();
    await server.close();
  });

for (const [what, rejected] of [
  ['404', response(404, {}, 'Could not find session')],
  ['400', response(400, {}, 'No transport found for sessionId')],
] as const)
  test(`an HTTP+SSE server that has forgotten the session (${what}) gets a new stream, and each call once more`, async () => {
    let forgotten = false;
    const server = await sseServer(({ method }) => {
      if (method === 'GET') forgotten = false;
      return forgotten ? rejected : undefined;
    });
    const client = await connect(`${server.url}/sse`, quiet);
    assert.equal((await client.call('add')).content, DONE);
    forgotten = true;
    assert.equal((await client.call('add')).content, DONE);
    assert.is(server.requests.filter(({ method, path }) => method === 'GET' && path === '/sse').length, 2);
    await client.close();
    await server.close();
  });

// HTTP+SSE

test(`S-79 a call over HTTP+SSE settles with each of ${STATUSES.length} statuses, as over HTTP`, async () => {
  let status = 0;
  const server = await sseServer((_, { method, params }) =>
    method === 'tools/call' && params?.name === 'odd'
      ? response(status, status === 429 ? { 'retry-after': '7' } : {}, 'text')
      : undefined,
  );
  const client = await connect(`${server.url}/sse`, quiet);
  const reasons = new Map<number, string>();
  for (status of STATUSES) {
    // 401 ends a connection without `auth`, and 404 and 410 a session.
    if (status < 300 || status === 401 || status === 404 || status === 410) continue;
    const error = await clientError(client.call('odd', {}, { timeoutMs: 20_000 }));
    reasons.set(status, `${error.reason} ${error.carriedOut} ${error.retryAfterMs ?? ''}`.trim());
    assert.is.not(error.reason, 'timed out', String(status));
  }
  assert.equal(
    [301, 400, 403, 429, 500, 503, 999].map((each) => reasons.get(each)),
    [
      'refused no',
      'refused no',
      'forbidden no',
      'overloaded no 7000',
      'unreachable unknown',
      'overloaded no',
      'unreachable unknown',
    ],
  );
  assert.equal((await client.call('add')).content, DONE);
  await client.close();
  await server.close();
});

test('S-79 an HTTP+SSE stream that opens with any status ends the attempt in words', async () => {
  for (const status of [101, 204, 299, 304, 399, 400, 401, 403, 404, 429, 500, 599, 600, 999]) {
    const server = await sseServer(({ method }) =>
      method === 'GET' ? response(status, { connection: 'close' }) : undefined,
    );
    const error = await clientError(connect(`${server.url}/sse`, { ...quiet, connectMs: 5_000 }));
    assert.is.not(error.reason, 'timed out');
    assert.not.match(error.message, 'connectMs', String(status));
    await server.close();
  }
});

test('a POST of HTTP+SSE that gets no response ends with its call, and one of a notification after connectMs', async () => {
  const clock = new SimulatedClock();
  const open = new Set<string>();
  const server = await rawServer((request, socket) => {
    const message = messageOf(request);
    if (request.path === '/sse' && request.method === 'POST') return response(405);
    if (request.method === 'GET') {
      stream = socket;
      return `${OPEN}event: endpoint\ndata: /m\n\n`;
    }
    if (message.method === 'tools/call' || message.method === 'notifications/cancelled') {
      open.add(message.method);
      socket.on('close', () => open.delete(message.method));
      return undefined;
    }
    if (message.id !== undefined) stream?.write(`data: ${JSON.stringify(resultOf(message))}\n\n`);
    return response(202);
  });
  let stream: Socket | undefined;
  const client = await connect(`${server.url}/sse`, { ...quiet, clock, connectMs: 5_000 });
  const call = clientError(client.call('add', {}, { timeoutMs: 2_000 }));
  await until(() => open.has('tools/call'));
  await clock.advance(2_000);
  assert.is((await call).reason, 'timed out');
  await until(() => open.has('notifications/cancelled') && !open.has('tools/call'));
  await clock.advance(5_000);
  await until(() => open.size === 0);
  await client.close();
  await server.close();
});

test('a result that is too long over HTTP+SSE ends its own call, and no other', async () => {
  let stream: Socket | undefined;
  let gets = 0;
  const waiting: (() => void)[] = [];
  const server = await rawServer((request, socket) => {
    const message = messageOf(request);
    if (request.path === '/sse' && request.method === 'POST') return response(405);
    if (request.method === 'GET') {
      gets += 1;
      stream = socket;
      return `${OPEN}event: endpoint\ndata: /m\n\n`;
    }
    const name = Object(message.params).name;
    // Two bytes for each character.
    const long = name === 'long' ? { content: [{ type: 'text', text: 'ü'.repeat(40_000) }] } : undefined;
    const send = (): void =>
      void stream?.write(
        `data: ${JSON.stringify(long ? { jsonrpc: '2.0', id: message.id, result: long } : resultOf(message))}\n\n`,
      );
    if (name === 'waits') waiting.push(send);
    else if (message.id !== undefined) send();
    return response(202);
  });
  const client = await connect(`${server.url}/sse`, { ...quiet, maxMessageBytes: 65_536 });
  const other = client.call('waits');
  await until(() => waiting.length === 1);
  const error = await clientError(client.call('long'));
  assert.equal([error.reason, error.carriedOut], ['too long', 'yes']);
  for (const answer of waiting) answer();
  assert.equal((await other).content, DONE);
  assert.equal((await client.call('add')).content, DONE);
  assert.is(gets, 1);
  await client.close();
  await server.close();
});

test('an event of another name is no message of HTTP+SSE', async () => {
  const logged: string[] = [];
  let stream: Socket | undefined;
  const server = await rawServer((request, socket) => {
    const message = messageOf(request);
    if (request.path === '/sse' && request.method === 'POST') return response(405);
    if (request.method === 'GET') {
      stream = socket;
      return `${OPEN}event: endpoint\ndata: /m\n\nevent: ping\ndata: 12:00\n\n`;
    }
    if (message.id !== undefined) stream?.write(`event: message\ndata: ${JSON.stringify(resultOf(message))}\n\n`);
    return response(202);
  });
  const client = await connect(`${server.url}/sse`, { eras: 'legacy', log: (_level, message) => logged.push(message) });
  assert.equal((await client.call('add')).content, DONE);
  assert.equal(logged, []);
  await client.close();
  await server.close();
});

// The gateway

test('S-79 a call of a gateway gets an answer from a hostile upstream, and the log names the upstream', async () => {
  let hostile: (socket: Socket) => Buffer | string | undefined = () => undefined;
  const upstream = await rawServer((request: RawRequest, socket) =>
    messageOf(request).method === 'tools/call' ? hostile(socket) : legacy(request),
  );
  const logged: string[] = [];
  const gateway = createServer({
    name: 'gateway',
    version: '1',
    log: (level, message) => logged.push(`${level}: ${message}`),
  });
  const mount = await gateway.mount('up', `${upstream.url}/mcp`, { eras: 'legacy' });
  await mount.ready();
  const client = await connect(gateway, quiet);
  for (const [what, respond] of [
    ['101', () => response(101, { connection: 'upgrade', upgrade: 'websocket' })],
    ['999', () => response(999)],
    ['an id that no header carries', () => events('id: \u0100\u0001\ndata:\n\n')],
    ['a redirect with a broken escape', () => response(307, { location: 'http://u%zz:p@[/' })],
    ['an unknown coding', () => response(200, { 'content-encoding': 'odd', 'content-type': 'application/json' })],
    ['bytes that are no HTTP', (socket: Socket) => void socket.end('nonsense\r\n\r\n')],
    ['a header with a control character', () => 'HTTP/1.1 200 OK\r\nx: \x01\r\n\r\n'],
  ] as const) {
    hostile = (socket) => respond(socket) ?? undefined;
    logged.length = 0;
    const result = await client.call('up_add');
    assert.is(result.isError, true, what);
    assert.match(JSON.stringify(result.content), '"up: ', what);
    assert.ok(
      logged.some((line) => line.includes(upstream.url)),
      what,
    );
    assert.not(
      logged.some((line) => line.startsWith('error')),
      `${what}: ${logged.join('; ')}`,
    );
  }
  await client.close();
  await gateway.close();
  await upstream.close();
});
