import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { connect } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { character } from '../harness/character.ts';
import { suite } from '../harness/door.ts';
import { jsonResponse, type RawRequest, rawServer, response, STATUSES } from '../harness/raw-server.ts';
import { times } from '../harness/scale.ts';
import { until, whilePassing } from '../harness/wait.ts';
import { clientError } from './fixture.ts';
import { EVENTS, events, legacy, messageOf, NotingClock, resultOf, using } from './raw-peer.ts';

const test = suite('requests over HTTP');

/** Without `auth`, 401 ends the connection: other tests have it. */
const ODD = STATUSES.filter((status) => status !== 401);

const UPGRADE = { connection: 'upgrade', upgrade: 'websocket' };

test(`S-79 a call settles with each of ${ODD.length} statuses from 100 to 999, and the client serves the next call`, async () => {
  let status = 0;
  await using(
    (_, { method, params }) => {
      if (method !== 'tools/call' || params?.name !== 'odd') return undefined;
      // A connection that ends shows that nothing follows a status of 1xx.
      return response(status, status === 101 ? UPGRADE : { connection: 'close' }, 'text');
    },
    async (client, server) => {
      for (status of ODD) {
        const odd = client.call('odd', {}, { timeoutMs: status < 200 && status !== 101 ? 50 : 20_000 });
        const error = await clientError(odd);
        assert.ok(error.message.length > 20, `${status}: ${error.message}`);
        if (status > 199 || status === 101) assert.is.not(error.reason, 'timed out', String(status));
      }
      const result = await client.call('add');
      assert.equal(result.content, [{ type: 'text', text: 'done' }]);
      assert.ok(server.requests.length >= ODD.length);
    },
  );
});

for (const where of ['GET', 'DELETE'] as const)
  test(`S-79 a ${where} of a session harms nothing, whatever its status`, async () => {
    for (const status of [101, 199, 200, 204, 299, 301, 304, 399, 400, 401, 403, 404, 500, 599, 600, 777, 999])
      await using(
        ({ method }) => (method === where ? response(status, { location: 'http://%:%@[', ...EVENTS }) : undefined),
        async (client) => {
          assert.equal((await client.call('add')).content, [{ type: 'text', text: 'done' }], String(status));
        },
      );
  });

test('a byte order mark before a message is read over, and the error about a foreign type is short', () =>
  using(
    (_, { id, params }) =>
      params?.name === 'marked'
        ? response(
            200,
            { 'content-type': 'application/json' },
            `\ufeff${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })}`,
          )
        : params?.name === 'foreign'
          ? response(200, { 'content-type': `text/${'x'.repeat(9_000)}` }, 'text')
          : undefined,
    async (client) => {
      assert.equal((await client.call('marked')).content, []);
      assert.ok((await clientError(client.call('foreign'))).message.length < 500);
    },
  ));

test('S-79 any id of an event is sent again as its bytes, or not at all', async () => {
  const ids = fc.string({ unit: character, maxLength: 12 }).map((id) => id.replace(/[\r\n\0]/g, '').toWellFormed());
  await fc.assert(
    fc.asyncProperty(ids, async (id) => {
      let asked = 0;
      const clock = new SimulatedClock();
      await using(
        ({ method, headers }, { method: name, id: call }) => {
          if (name === 'tools/call') {
            asked = call ?? 0;
            return events(`id: ${id}\ndata:\n\n`);
          }
          if (method !== 'GET' || headers['last-event-id'] === undefined) return undefined;
          return events(`data: ${JSON.stringify(resultOf({ id: asked, method: 'tools/call' }))}\n\n`);
        },
        async (client, server) => {
          let outcome = '';
          const call = client.call('add', {}, { timeoutMs: 60_000 }).then(
            () => (outcome = 'done'),
            (error: Error) => (outcome = error.message),
          );
          await whilePassing(clock, call, 200);
          const sent = server.requests.find(({ headers }) => headers['last-event-id'] !== undefined);
          if (sent === undefined) assert.match(outcome, 'ended before it was complete');
          else {
            const expected = id.startsWith(' ') ? id.slice(1) : id;
            // Spaces at the ends are no part of the value of a header.
            const value = expected.replace(/^[ \t]+|[ \t]+$/g, '');
            assert.is(Buffer.from(sent.headers['last-event-id'] ?? '', 'latin1').toString('utf8'), value);
            assert.is(outcome, 'done');
          }
        },
        { clock },
      );
    }),
    { numRuns: times(60, { quick: 6 }), examples: [['😀'], ['\u{1069e0}'], ['é'], ['\u0001'], ['\u007f'], ['1']] },
  );
});

const LARGE = JSON.stringify(resultOf({ id: 0, method: 'tools/call' }));

for (const [what, coding, encode] of [
  ['identity', 'identity', (body: Buffer) => body],
  ['gzip', 'gzip', gzipSync],
  ['x-gzip', 'x-gzip', gzipSync],
  ['GZIP', 'GZIP', gzipSync],
  ['deflate', 'deflate', deflateSync],
  ['deflate without the header of zlib', 'deflate', deflateRawSync],
  ['br', 'br', brotliCompressSync],
  ['gzip and br', 'gzip, br', (body: Buffer) => brotliCompressSync(gzipSync(body))],
] as const)
  for (const type of ['application/json', 'text/event-stream'] as const)
    test(`a response in ${type} with the coding ${what} is read`, () =>
      using(
        ({ headers }, message) => {
          if (message.method !== 'tools/call') return undefined;
          assert.is(headers['accept-encoding'], 'identity');
          const text = JSON.stringify(resultOf(message));
          const body = encode(Buffer.from(type === 'text/event-stream' ? `data: ${text}\n\n` : text));
          return response(200, { 'content-type': type, 'content-encoding': coding }, body);
        },
        async (client) => assert.equal((await client.call('add')).content, [{ type: 'text', text: 'done' }]),
      ));

for (const [what, headers, body, reason] of [
  ['an unknown coding', { 'content-encoding': 'zstd' }, Buffer.from(LARGE), 'malformed'],
  ['three codings', { 'content-encoding': 'gzip, gzip, gzip' }, gzipSync(LARGE), 'malformed'],
  ['a damaged body', { 'content-encoding': 'gzip' }, gzipSync(LARGE).subarray(0, 20).fill(255, 10), 'malformed'],
  ['an empty body', { 'content-encoding': 'deflate' }, Buffer.alloc(0), 'malformed'],
  [
    'a body that is too long when it is decoded',
    { 'content-encoding': 'gzip' },
    gzipSync(Buffer.alloc(4_000_000, 32)),
    'too long',
  ],
] as const)
  test(`${what} ends a call in words`, () =>
    using(
      (_, { method }) =>
        method === 'tools/call' ? response(200, { 'content-type': 'application/json', ...headers }, body) : undefined,
      async (client) => {
        const error = await clientError(client.call('add'));
        assert.is(error.reason, reason, error.message);
      },
      { maxMessageBytes: 1_000_000 },
    ));

for (const status of [301, 307, 308] as const)
  test(`a session at an address that responds ${status}: its calls, its stream and its end go to the other address`, async () => {
    const seen: string[] = [];
    const server = await rawServer((request) => {
      if (request.path === '/mcp') return response(status, { location: '/mcp/' });
      seen.push(request.method);
      return legacy(request);
    });
    const client = await connect(`${server.url}/mcp`, { eras: 'legacy', log: () => {} });
    await client.call('add');
    await until(() => seen.includes('GET'));
    await client.close();
    assert.ok(seen.includes('DELETE'));
    // The session belongs to the address that opened it.
    assert.is(server.requests.filter(({ path }) => path === '/mcp').length, 1);
    await server.close();
  });

test('credentials and broken escapes in the address of a redirect are not used', async () => {
  const server = await rawServer((request) => {
    if (request.path === '/mcp')
      return response(307, { location: `http://%zz:%@127.0.0.1:${new URL(server.url).port}/there` });
    return legacy(request);
  });
  const url = new URL(`${server.url}/mcp`);
  url.username = 'ada';
  const client = await connect(url, { eras: 'legacy', log: () => {} });
  const redirected = server.requests.find(({ path }) => path === '/there');
  assert.is(redirected?.headers.authorization, `Basic ${Buffer.from('ada:').toString('base64')}`);
  await client.close();
  await server.close();
});

for (const [what, lost, status, body] of [
  ['404', true, 404, ''],
  ['410', true, 410, 'gone'],
  [
    '400 with the error of the official SDK',
    true,
    400,
    { code: -32000, message: 'Bad Request: No valid session ID provided' },
  ],
  ['400 with "Server not initialized"', true, 400, { code: -32000, message: 'Bad Request: Server not initialized' }],
  [
    '400 with -32600 and a word about the session',
    true,
    400,
    { code: -32600, message: 'Invalid or expired session ID' },
  ],
  ['400 with plain text', true, 400, 'Invalid session'],
  ['400 with an error about the call', false, 400, { code: -32602, message: 'unknown tool' }],
  ['401 without a challenge', true, 401, 'Unauthorized: Session not found'],
  ['403 with a word about the session', true, 403, 'Invalid session'],
  ['409 with a word about the session', true, 409, { code: -32603, message: 'The session has expired' }],
  ['503 with a word about the session', true, 503, 'Session not found'],
  ['422', true, 422, 'Unexpected message, expect initialize request'],
  ['403', false, 403, ''],
  ['500', false, 500, ''],
] as const)
  test(`${what} ${lost ? 'is a lost session: the call runs in a new one' : 'is no lost session'}`, async () => {
    let restarted = false;
    await using(
      (_, { id, method }) => {
        if (method === 'initialize') restarted = restarted && false;
        if (method !== 'tools/call' || !restarted) return undefined;
        if (typeof body === 'string') return response(status, { 'content-type': 'text/plain' }, body);
        return jsonResponse({ jsonrpc: '2.0', id: body.code === -32602 ? id : null, error: body }, status);
      },
      async (client, server) => {
        restarted = true;
        const outcome = await client.call('add').then(
          () => 'done',
          () => 'failed',
        );
        const opened = server.requests.filter((request) => messageOf(request).method === 'initialize').length;
        assert.equal([outcome, opened], lost ? ['done', 2] : ['failed', 1]);
      },
    );
  });

test('a server that responds 400 to each session gets a bounded number of attempts, and its words are in the error', () =>
  using(
    (_, { method }) => (method === 'tools/call' ? response(400, {}, 'Invalid session header') : undefined),
    async (client, server) => {
      const error = await clientError(client.call('add'));
      assert.match(error.message, 'Invalid session header');
      assert.is(server.requests.filter((request) => messageOf(request).method === 'tools/call').length, 2);
    },
  ));

test('S-88 retry: 0, with a new event each time, resumes at most once in 200 ms', async () => {
  const clock = new NotingClock();
  let streams = 0;
  /** The timers that started before the newest stream. The next one is the delay before the client resumes. */
  let before = 0;
  await using(
    ({ method, headers }, { method: name }) => {
      if (name !== 'tools/call' && (method !== 'GET' || headers['last-event-id'] === undefined)) return undefined;
      before = clock.delays.length;
      streams += 1;
      return events(`retry: 0\nid: e${streams}\ndata:\n\n`);
    },
    async (client) => {
      const call = clientError(client.call('add', {}, { timeoutMs: 5_000 }));
      for (let stream = 1; stream <= 4; stream += 1) {
        await until(() => streams === stream, `stream ${stream}`);
        await until(() => clock.delays.length > before, 'the end of the stream');
        const delay = clock.delays[before] ?? 0;
        assert.ok(delay >= 200, `${delay} ms before stream ${stream + 1}`);
        // A millisecond earlier, the timer has not run.
        await clock.advance(delay - 1);
        assert.is(streams, stream);
        await clock.advance(1);
      }
      await clock.advance(5_000);
      assert.is((await call).reason, 'timed out');
    },
    { clock },
  );
});

for (const [what, answer] of [
  ['204', response(204)],
  ['202', response(202)],
  ['200 with an empty body', response(200, { 'content-type': 'application/json' })],
  ['200 with text', response(200, { 'content-type': 'text/plain' }, 'ok')],
  ['200 with a page', response(200, { 'content-type': 'text/html' }, '<!doctype html><title>hello</title>')],
  ['200 with broken JSON', response(200, { 'content-type': 'application/json' }, '{"jsonrpc"')],
  ['200 with other JSON', jsonResponse({ hello: 'world' })],
  ['a stream without a message', events(': nothing\n\n')],
  ['500', response(500, {}, 'unknown method')],
  ['418', response(418)],
  ['600', response(600)],
] as const)
  test(`a probe that is answered with ${what} shows a legacy server`, () =>
    using(
      (_, { method }) => (method === 'server/discover' ? answer : undefined),
      async (client) => assert.is(client.server.era, 'legacy'),
      { eras: 'auto' },
    ));

for (const [what, headers, expected] of [
  ['a final line break', { 'X-User': 'ada\r\n' }, 'ada'],
  ['spaces around the value', { 'X-User': ' ada ' }, 'ada'],
  ['a character of Latin-1', { 'X-User': 'Zoë' }, 'Zoë'],
  ['a line break inside', { 'X-User': 'a\nb' }, /"X-User" has a line break/],
  ['another script', { 'X-User': '李雷' }, /"X-User" has .*above U\+00FF/],
  ['a bad name', { 'X User': 'ada' }, /name of an HTTP header .* got "X User"/],
  ['a value that is no text', JSON.parse('{"X-User": 7}'), /expected a string .*"X-User", got number/],
] as const)
  test(`configured headers: ${what} ${typeof expected === 'string' ? 'is sent' : 'rejects the connection at once'}`, async () => {
    const server = await rawServer(legacy);
    try {
      const client = await connect({ url: `${server.url}/mcp`, headers }, { eras: 'legacy', log: () => {} });
      await client.close();
      assert.is(server.requests[0]?.headers['x-user'], expected);
    } catch (error) {
      if (typeof expected === 'string') throw error;
      assert.match(String(error), expected);
      assert.is(server.requests.length, 0);
    } finally {
      await server.close();
    }
  });

test('S-79 a token with a line break fails the call in words, and not the process', async () => {
  const server = await rawServer(legacy);
  const auth = { headers: () => ({ authorization: 'Bearer a\nb' }), authorize: async () => {} };
  const error = await clientError(connect({ url: `${server.url}/mcp`, auth }, { connectMs: 2_000, log: () => {} }));
  assert.match(error.message, 'the request cannot be sent');
  await server.close();
});

test('no request overtakes `notifications/initialized` on another socket', async () => {
  let accept: (() => void) | undefined;
  const methods: string[] = [];
  const server = await rawServer((request, socket) => {
    const { method } = messageOf(request);
    methods.push(method);
    if (method !== 'notifications/initialized') return legacy(request);
    accept = () => socket.write(response(202));
    return undefined;
  });
  const client = await connect(`${server.url}/mcp`, { eras: 'legacy', log: () => {} });
  const call = client.call('add');
  await until(() => accept !== undefined);
  // A request that were sent with the notification would be here before this one.
  await fetch(server.url);
  assert.not(methods.includes('tools/call'));
  accept?.();
  await call;
  await client.close();
  await server.close();
});

for (const responds of [true, false])
  test(`no request overtakes the stream of the session, ${responds ? 'which opens at once' : 'for at most 300 ms'}`, async () => {
    const clock = new SimulatedClock();
    let open: (() => void) | undefined;
    const server = await rawServer((request, socket) => {
      if (request.path !== '/mcp' || request.method !== 'GET') return legacy(request);
      open = () => socket.write(response(200, EVENTS, ': open\n\n'));
      return undefined;
    });
    const client = await connect(`${server.url}/mcp`, { eras: 'legacy', log: () => {}, clock });
    const call = client.call('add');
    await until(() => open !== undefined);
    // A request that were sent with that of the stream would be here before this one.
    await fetch(server.url);
    assert.not(server.requests.some(({ body }) => body.includes('tools/call')));
    if (responds) open?.();
    else await clock.advance(300);
    await call;
    await client.close();
    await server.close();
  });

test('the stream of a session that is rejected with 401 opens with the next token', async () => {
  let valid = 'one';
  let token = 'one';
  const server = await rawServer((request) => {
    if (request.headers.authorization !== `Bearer ${valid}`) return response(401, { 'www-authenticate': 'Bearer' });
    if (request.method === 'GET') return response(200, EVENTS, 'retry: 200\n\n');
    return legacy(request);
  });
  const auth = {
    headers: () => ({ authorization: `Bearer ${token}` }),
    async authorize() {
      token = 'two';
    },
  };
  const client = await connect({ url: `${server.url}/mcp`, auth }, { eras: 'legacy', log: () => {} });
  const gets = (): number => server.requests.filter(({ method }) => method === 'GET').length;
  await until(() => gets() === 1);
  valid = 'two';
  await until(() => gets() === 2);
  await client.call('add');
  const withToken = ({ method, headers }: RawRequest): boolean =>
    method === 'GET' && headers.authorization === 'Bearer two';
  await until(() => server.requests.some(withToken));
  await client.close();
  await server.close();
});

test('a call whose stream cannot be resumed with its token waits for the next token, and runs once', async () => {
  let valid = 'one';
  let token = 'one';
  let asked: number | undefined;
  const server = await rawServer((request) => {
    const message = messageOf(request);
    if (request.headers.authorization !== `Bearer ${valid}`) return response(401, { 'www-authenticate': 'Bearer' });
    if (message.method === 'tools/call') {
      asked = message.id;
      valid = 'two';
      return events('retry: 200\nid: e0\ndata:\n\n');
    }
    if (request.method !== 'GET' || request.headers['last-event-id'] === undefined) return legacy(request);
    return events(`data: ${JSON.stringify(resultOf({ id: asked ?? 0, method: 'tools/call' }))}\n\n`);
  });
  const auth = {
    headers: () => ({ authorization: `Bearer ${token}` }),
    async authorize() {
      token = 'two';
    },
  };
  const client = await connect({ url: `${server.url}/mcp`, auth }, { eras: 'legacy', log: () => {} });
  assert.equal((await client.call('add')).content, [{ type: 'text', text: 'done' }]);
  assert.is(server.requests.filter((request) => messageOf(request).method === 'tools/call').length, 1);
  await client.close();
  await server.close();
});

test('an HTTP+SSE server that demands a token for its stream gets one, once', async () => {
  let token = '';
  let signIns = 0;
  const server = await rawServer((request, socket) => {
    const message = messageOf(request);
    if (request.path === '/sse' && request.method === 'POST') return response(404);
    if (request.headers.authorization !== 'Bearer good') return response(401, { 'www-authenticate': 'Bearer' });
    if (request.method === 'GET') {
      stream = socket;
      const text = 'event: endpoint\ndata: ./messages?s=1\n\n';
      return `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${text}`;
    }
    if (message.id !== undefined) stream?.write(`data: ${JSON.stringify(resultOf(message))}\n\n`);
    return response(202);
  });
  let stream: Parameters<Parameters<typeof rawServer>[0]>[1] | undefined;
  const auth = {
    headers: () => (token === '' ? undefined : { authorization: `Bearer ${token}` }),
    async authorize() {
      signIns += 1;
      token = 'good';
    },
  };
  const client = await connect({ url: `${server.url}/sse`, auth }, { eras: 'legacy', log: () => {} });
  assert.equal((await client.call('add')).content, [{ type: 'text', text: 'done' }]);
  assert.is(signIns, 1);
  await client.close();
  await server.close();
});

test('an HTTP+SSE server whose token is never good ends the connection in words after three sign-ins', async () => {
  let signIns = 0;
  const server = await rawServer((request) =>
    request.method === 'POST' ? response(404) : response(401, { 'www-authenticate': 'Bearer' }),
  );
  const auth = {
    headers: () => ({ authorization: 'Bearer bad' }),
    async authorize() {
      signIns += 1;
    },
  };
  const error = await clientError(
    connect({ url: `${server.url}/sse`, auth }, { eras: 'legacy', connectMs: 2_000, log: () => {} }),
  );
  assert.is(error.reason, 'unauthorized');
  assert.is(signIns, 3);
  await server.close();
});

for (const [what, status, headers, said] of [
  [
    'a challenge',
    403,
    { 'www-authenticate': 'Bearer error="insufficient_scope", scope="loans:write"' },
    'scope="loans:write"',
  ],
  ['a body', 401, {}, 'the key in x-api-key is disabled'],
  ['a body beside a challenge', 401, { 'www-authenticate': 'Bearer realm="x"' }, 'the key in x-api-key is disabled'],
  ['a body of a rejected Host', 403, {}, 'the key in x-api-key is disabled'],
] as const)
  for (const [how, auth] of [
    ['without sign-in', {}],
    [
      'when sign-in fails',
      { auth: { headers: () => undefined, authorize: () => Promise.reject(new Error('no metadata')) } },
    ],
  ] as const)
    test(`the cause of a ${status} in ${what} reaches the caller ${how}`, async () => {
      const server = await rawServer(() =>
        response(status, { ...headers, 'content-type': 'text/plain' }, 'the key in x-api-key is disabled'),
      );
      const error = await clientError(
        connect({ url: `${server.url}/mcp`, ...auth }, { connectMs: 2_000, log: () => {} }),
      );
      assert.is(error.reason, status === 403 ? 'forbidden' : 'unauthorized');
      // A sign-in that fails has read the challenge.
      assert.match(error.message, how === 'when sign-in fails' && what === 'a challenge' ? 'no metadata' : said);
      await server.close();
    });

test('a rejection whose body never ends is reported all the same', async () => {
  const clock = new SimulatedClock();
  const head = 'HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 100\r\n\r\n';
  const server = await rawServer(() => Buffer.from(`${head}the begin`));
  const failed = clientError(connect({ url: `${server.url}/mcp` }, { clock, log: () => {} }));
  await until(() => server.requests.length > 0);
  assert.is((await whilePassing(clock, failed, 100)).reason, 'unauthorized');
  await server.close();
});
