/** Requests to an API: which are repeated, what their caller learns, pauses, redirects, guarded addresses, and entity tags. */
import * as assert from 'uvu/assert';
import { ClientError } from '../../../src/client/client-errors.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { ApiConnection, type ApiRequest } from '../../../src/gateway/openapi/api-connection.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { freePort } from '../../harness/free-port.ts';
import { type RawRequest, type RawServer, rawServer, response } from '../../harness/raw-server.ts';
import { rejection, textOf } from '../../harness/results.ts';
import { until } from '../../harness/wait.ts';
import { apiStage } from './api-stage.ts';

const test = suite('requests to an API');

function connectionTo(api: string, clock = new SimulatedClock()): ApiConnection {
  return new ApiConnection({ mount: 'pets', clock, trusted: [new URL(api)], maxBytes: 10_000 });
}

function request(url: string, more: Partial<ApiRequest> = {}): ApiRequest {
  const { method = 'GET' } = more;
  const reads = method === 'GET';
  return {
    ...{ method, url: new URL(url), headers: {}, body: undefined, client: 'one', reads, repeatable: reads },
    signal: new AbortController().signal,
    ...more,
  };
}

/** Waits for a request while simulated time passes. */
async function passing<T>(clock: SimulatedClock, promise: Promise<T>): Promise<T> {
  let done = false;
  const end = (): void => {
    done = true;
  };
  promise.then(end, end);
  await until(async () => {
    if (!done) await clock.advance(100);
    return done;
  });
  return promise;
}

/** A server that answers with the statuses in turn, the last one for ever; 0 closes the connection. */
function inTurn(statuses: readonly number[], headers: Readonly<Record<string, string>> = {}): Promise<RawServer> {
  let count = 0;
  return rawServer((_, socket) => {
    const status = statuses[Math.min(count, statuses.length - 1)] ?? 200;
    count += 1;
    if (status !== 0) return response(status, status === 429 || status === 503 ? headers : {}, String(status));
    socket.destroy();
    return undefined;
  });
}

/** The statuses in turn, the request, and the statuses that its caller gets after so many requests. */
const REPEATS: readonly (readonly [
  why: string,
  statuses: readonly number[],
  more: Partial<ApiRequest>,
  status: number,
  sent: number,
])[] = [
  ['a read after 502 and 503', [502, 503, 200], {}, 200, 3],
  ['a read at most twice', [504], {}, 504, 3],
  ['a read whose connection was closed', [0, 200], {}, 200, 2],
  ['a call with an idempotency key', [502, 200], { method: 'POST', repeatable: true }, 200, 2],
  ['no other call', [502, 200], { method: 'POST' }, 502, 1],
  ['no read after 500', [500, 200], {}, 500, 1],
];

for (const [why, statuses, more, status, sent] of REPEATS)
  test(`the connection repeats ${why}`, async () => {
    const api = await inTurn(statuses);
    const clock = new SimulatedClock();
    const got = await passing(clock, connectionTo(api.url, clock).send(request(`${api.url}/x`, more)));
    assert.equal([got.status, api.requests.length], [status, sent]);
    await api.close();
  });

test('a call that did not reach the API was not carried out, and of another one it is not known', async () => {
  const closing = await inTurn([0]);
  const nobody = `http://127.0.0.1:${await freePort()}`;
  for (const [api, carriedOut, words] of [
    [nobody, 'no', 'pets: the server cannot be reached. "use" was not carried out. Try again later.'],
    [
      closing.url,
      'unknown',
      'pets: the connection to the server ended before the response. It is not known whether "use" was carried out. Find that out before you call it again.',
    ],
  ] as const) {
    const error = await rejection(connectionTo(api).send(request(`${api}/x`, { method: 'POST' })), ClientError);
    assert.is(error.carriedOut, carriedOut);
    const desk = await apiStage(api, { request: { path: '/x', method: 'POST' } });
    const result = await desk.call();
    assert.equal([result.isError, textOf(result)], [true, words]);
    const failure = result._meta?.[META.upstreamFailure] as JsonObject;
    assert.is(failure.carriedOut, carriedOut);
    await desk.close();
  }
  await closing.close();
});

test('a short Retry-After is waited for once, and holds up the other calls with these credentials', async () => {
  const api = await inTurn([429, 200], { 'retry-after': '2' });
  const clock = new SimulatedClock();
  const delays: number[] = [];
  const after = clock.after.bind(clock);
  clock.after = (ms, callback) => {
    delays.push(ms);
    return after(ms, callback);
  };
  const connection = connectionTo(api.url, clock);
  const first = connection.send(request(`${api.url}/x`));
  await until(() => delays.includes(2_000));
  const second = connection.send(request(`${api.url}/x`, { method: 'POST' }));
  const other = await connection.send(request(`${api.url}/x`, { client: 'two' }));
  assert.equal([other.status, api.requests.length], [200, 2]);
  await clock.advance(1_900);
  assert.is(api.requests.length, 2);
  await clock.advance(100);
  assert.equal([(await first).status, (await second).status, api.requests.length], [200, 200, 4]);
  await api.close();
});

test('a long Retry-After reaches the caller, and further calls are not sent', async () => {
  const api = await inTurn([429], { 'retry-after': '60' });
  const desk = await apiStage(api.url, { request: { path: '/x' } });
  const result = await desk.call();
  assert.equal(
    [result._meta?.[META.retryAfterMs], textOf(result)],
    [60_000, '429 Too Many Requests: 429\nTry again in 60 s.'],
  );
  const next = await desk.call();
  assert.match(
    textOf(next),
    /^pets: the server has too many calls\. "use" was not carried out\. Try again in (?:60|59) s\.$/,
  );
  assert.is(api.requests.length, 1);
  await desk.close();
  await api.close();
});

test('a call with effects does not wait for Retry-After', async () => {
  const api = await inTurn([503, 200], { 'retry-after': '1' });
  const got = await connectionTo(api.url).send(request(`${api.url}/x`, { method: 'POST' }));
  assert.equal([got.status, api.requests.length], [503, 1]);
  await api.close();
});

test('S-111: a read follows three redirects within its origin, and none to another one', async () => {
  const other = await rawServer(() => response(200, {}, 'other'));
  const api = await rawServer(({ path }) => {
    if (path === '/away') return response(302, { location: `${other.url}/x` });
    if (path === '/loop') return response(302, { location: '/loop' });
    return path === '/end' ? response(200, {}, 'end') : response(302, { location: path === '/1' ? '/2' : '/end' });
  });
  const connection = connectionTo(api.url);
  const end = await connection.send(request(`${api.url}/1`, { headers: { authorization: 'Bearer x' } }));
  assert.equal([end.status, String(end.body), api.requests.at(-1)?.headers.authorization], [200, 'end', 'Bearer x']);
  assert.is((await connection.send(request(`${api.url}/away`))).status, 302);
  assert.is(other.requests.length, 0);
  const before = api.requests.length;
  assert.is((await connection.send(request(`${api.url}/loop`))).status, 302);
  assert.is(api.requests.length - before, 4);
  assert.is((await connection.send(request(`${api.url}/1`, { method: 'POST' }))).status, 302);
  await Promise.all([api.close(), other.close()]);
});

/** Addresses that a document may name, and that an operator has not named. */
const PRIVATE = [
  ...[
    'http://127.0.0.1:1/x',
    'http://localhost:1/x',
    'https://127.0.0.1/x',
    'https://10.0.0.1/x',
    'https://192.168.0.1/x',
  ],
  ...['https://169.254.169.254/latest/meta-data', 'https://[::1]/x', 'https://[fd00::1]/x', 'https://0x7f000001/x'],
  ...[
    'https://2130706433/x',
    'https://localhost/x',
    'http://api.example.org/x',
    'https://user:secret@api.example.com/x',
  ],
];

for (const address of PRIVATE)
  test(`S-111: a request to ${address} is not made for an operator who has named another address`, async () => {
    const error = await rejection(connectionTo('https://api.example.com').send(request(address)), ClientError);
    assert.equal([error.reason, error.carriedOut], ['refused', 'no']);
    assert.not.match(error.message, 'secret');
  });

test('a GET is validated by its entity tag for the same credentials, address and headers', async () => {
  const validated: RawRequest[] = [];
  const api = await rawServer((asked) => {
    if (asked.headers['if-none-match'] === '"v1"') {
      validated.push(asked);
      return response(304, { etag: '"v1"' });
    }
    const store = asked.path === '/secret' ? { 'cache-control': 'private, no-store' } : {};
    return response(200, { etag: '"v1"', 'x-from': 'first', ...store }, asked.path);
  });
  const connection = connectionTo(api.url);
  const get = (path: string, more: Partial<ApiRequest> = {}) => connection.send(request(`${api.url}${path}`, more));
  await get('/a');
  const again = await get('/a');
  assert.equal([again.status, String(again.body), again.headers.get('x-from')], [200, '/a', 'first']);
  assert.is(validated.length, 1);
  for (const [path, more] of [
    ['/a', { client: 'two' }],
    ['/a?b', {}],
    ['/a', { headers: { accept: 'text/plain' } }],
    ['/a', { method: 'POST' }],
    ['/secret', {}],
  ] as const) {
    await get(path, more);
    assert.is(validated.length, 1, path);
  }
  await get('/secret');
  assert.is(validated.length, 1);
  // Its own validator is the caller's.
  assert.is((await get('/a', { headers: { 'if-none-match': '"v1"' } })).status, 304);
  await api.close();
});

test('a cancelled call ends its request, and the pause before a repeat', async () => {
  const api = await inTurn([502]);
  const clock = new SimulatedClock();
  const controller = new AbortController();
  const sent = rejection(
    connectionTo(api.url, clock).send(request(`${api.url}/x`, { signal: controller.signal })),
    ClientError,
  );
  await until(() => api.requests.length === 1);
  await until(() => clock.timers > 0);
  controller.abort();
  assert.is((await sent).reason, 'cancelled');
  assert.is(clock.timers, 0);
  await api.close();
});
