/** Webhooks of events: subscriptions in both profiles, verified endpoints, deliveries in order, retries, and ends. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { LATEST_MODERN } from '../../../../src/core/protocol/revisions.ts';
import { connect, settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { errorResponse } from '../../../harness/results.ts';
import { TestStore } from '../../../harness/test-store.ts';
import {
  deliveryStage,
  idsOf,
  OTHER_SECRET,
  receiver,
  SECRET,
  SEP,
  signatureOf,
  subscription,
  untilDelivered,
} from './support.ts';

const test = suite('webhooks of events');

const MODERN_HEADERS = {
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
  'mcp-protocol-version': LATEST_MODERN,
  'mcp-method': 'events/subscribe',
};
const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': LATEST_MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

test('a subscription is verified once, and its events arrive in order, signed, with a cursor', async () => {
  const hook = await receiver();
  const { as, emit, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  const granted = await ada.modern('events/subscribe', subscription(hook.url), SEP);
  assert.is(hook.challenges.length, 1);
  assert.is(granted.truncated, false);
  for (const n of [1, 2, 3]) await emit(n);
  await untilDelivered(hook, 3);
  assert.equal(idsOf(hook), ['e1', 'e2', 'e3']);
  for (const post of [...hook.challenges, ...hook.posts]) {
    assert.equal(post.signatures, [signatureOf(post, SECRET)]);
    assert.is(post.subscription, granted.id);
  }
  const [first] = hook.posts;
  const { timestamp, cursor } = first?.body ?? {};
  assert.equal(first?.body, { eventId: 'e1', name: 'note', timestamp, data: { n: 1 }, cursor });
  assert.match(String(timestamp), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  await close();
  await hook.close();
});

test('S-134: only an authenticated caller subscribes, with an https address and a secret of 24 to 64 bytes', async () => {
  const hook = await receiver();
  const { server, as, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  const nobody = async (profile: JsonObject = {}): Promise<number> => {
    const params = { ...subscription(hook.url), _meta: { ...MODERN_META, ...profile } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'events/subscribe', params });
    const response = await server.fetch(
      new Request('http://localhost/mcp', { method: 'POST', headers: MODERN_HEADERS, body }),
    );
    const { error } = (await response.json()) as { error: { code: number } };
    return error.code;
  };
  assert.equal([await nobody(SEP), await nobody()], [-32024, -32012]);
  const local = await connect(server);
  assert.is((await errorResponse(local.modern('events/subscribe', subscription(hook.url)))).code, -32012);
  const wrong: readonly (readonly [JsonObject, number])[] = [
    [{ ...subscription(hook.url), name: 'nothing' }, -32023],
    [{ ...subscription(hook.url), arguments: { to: 5 } }, -32602],
    [{ ...subscription(hook.url), ttlMs: 1.5 }, -32602],
    [{ ...subscription(hook.url), delivery: { mode: 'push', url: hook.url, secret: SECRET } }, -32602],
    ...[
      ...[
        '',
        'nothing',
        'http://example.com/',
        'ftp://example.com/',
        'https://user:pw@example.com/',
        'javascript:alert(1)',
      ],
      ...[
        'https://example.com/#part',
        `https://example.com/${'a'.repeat(3_000)}`,
        'http://127.0.0.1:1/',
        'file:///etc/passwd',
      ],
    ].map((url) => [subscription(url), -32602] as const),
    ...[
      ...['', 'whsec_', SECRET.slice(6), `whsec_${Buffer.alloc(23).toString('base64')}`],
      ...[`whsec_${Buffer.alloc(65).toString('base64')}`, `${SECRET}!`, `${SECRET.slice(0, 30)} ${SECRET.slice(30)}`],
    ].map((secret) => [subscription(hook.url, {}, secret), -32602] as const),
    // Addresses that only some machines reach.
    ...[
      ...['https://127.0.0.1/', 'https://10.0.0.1/', 'https://[::1]/', 'https://[::ffff:8.8.8.8]/', 'https://0x7f.1/'],
      ...['https://192.0.2.1/', 'https://[2001:db8::1]/', 'https://169.254.169.254/latest', 'https://[fd00::1]/'],
    ].map((url) => [subscription(url), -32027] as const),
  ];
  for (const [index, [params, code]] of wrong.entries()) {
    // Verifications are limited for each principal.
    const caller = code === -32027 ? await as(`p${index}`) : ada;
    const error = await errorResponse(caller.modern('events/subscribe', params, SEP));
    assert.is(error.code, code, JSON.stringify(params));
    assert.not(JSON.stringify(error).includes(SECRET.slice(6, 30)), 'the secret is in no error');
    if (code === -32027) assert.equal(error.data, { reason: 'connection_refused' });
  }
  assert.is(hook.challenges.length, 0);
  await close();
  await hook.close();
});

test('the same call is the same subscription: a refresh replaces the secret, and other arguments need no further challenge', async () => {
  const hook = await receiver();
  const { as, emit, clock, close } = deliveryStage([hook.origin], { store: new TestStore() });
  const [ada, bob] = [await as('ada'), await as('bob')];
  const first = await ada.modern('events/subscribe', subscription(hook.url), SEP);
  const again = await ada.modern('events/subscribe', subscription(hook.url, {}, OTHER_SECRET), SEP);
  assert.is(again.id, first.id);
  assert.equal(again.deliveryStatus, { active: true, lastError: null });
  const other = await ada.modern('events/subscribe', subscription(hook.url, { arguments: { to: 'x' } }), SEP);
  assert.is.not(other.id, first.id);
  assert.is(hook.challenges.length, 1, 'the endpoint is verified already');
  await bob.modern('events/subscribe', subscription(hook.url), SEP);
  assert.is(hook.challenges.length, 2, 'for each principal');
  await bob.modern('events/unsubscribe', subscription(hook.url), SEP);
  await emit(1);
  await untilDelivered(hook, 1);
  const [post] = hook.posts;
  assert.ok(post);
  assert.equal(post?.signatures, [signatureOf(post, OTHER_SECRET), signatureOf(post, SECRET)]);
  await clock.advance(3_600_000);
  await emit(2);
  await untilDelivered(hook, 2);
  const [, later] = hook.posts;
  assert.ok(later);
  assert.equal(later?.signatures, [signatureOf(later, OTHER_SECRET)]);
  await ada.modern('events/unsubscribe', subscription(hook.url), SEP);
  assert.is((await errorResponse(ada.modern('events/unsubscribe', subscription(hook.url), SEP))).code, -32023);
  assert.is((await ada.modern('events/unsubscribe', subscription(hook.url))).resultType, 'complete');
  await emit(3);
  await settled();
  assert.equal(idsOf(hook), ['e1', 'e2']);
  await close();
  await hook.close();
});

test('a time is granted, never rejected, and a subscription ends with it', async () => {
  const hook = await receiver();
  const store = new TestStore();
  const stage = deliveryStage([hook.origin], { store, events: { callbacks: { noExpiry: true } } });
  const { clock, emit, close } = stage;
  const ada = await stage.as('ada');
  const granted = async (ttl: JsonObject): Promise<unknown> => {
    const { refreshBefore } = await ada.modern('events/subscribe', subscription(hook.url, ttl), SEP);
    return refreshBefore === null ? null : (Date.parse(String(refreshBefore)) - clock.date()) / 1_000;
  };
  assert.equal(
    [
      await granted({}),
      await granted({ ttlMs: 1 }),
      await granted({ ttlMs: 7_200_000 }),
      await granted({ ttlMs: 10 ** 12 }),
      await granted({ ttlMs: null }),
      await granted({ ttlMs: 0 }),
    ],
    [86_400, 60, 7_200, 7 * 86_400, null, 60],
  );
  await clock.advance(59_000);
  await emit(1);
  await untilDelivered(hook, 1);
  await clock.advance(1_000);
  await emit(2);
  await settled();
  assert.equal(idsOf(hook), ['e1']);
  assert.equal(await store.list({ kind: 'webhook', limit: 9 }), []);
  await close();
  const memory = deliveryStage([hook.origin]);
  const bob = await memory.as('bob');
  const { refreshBefore } = await bob.modern('events/subscribe', subscription(hook.url, { ttlMs: null }), SEP);
  assert.is(
    Date.parse(String(refreshBefore)) - memory.clock.date(),
    1_800_000,
    'without a durable store it is half an hour',
  );
  await memory.close();
  await hook.close();
});

test('R-84: an endpoint that is down loses nothing: its head is tried, then it is suspended, and a refresh or a probe resumes it', async () => {
  const hook = await receiver();
  const { as, emit, clock, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  hook.answer = () => 500;
  await emit(1);
  await emit(2);
  await untilDelivered(hook, 1);
  for (const [index, bound] of [1_000, 5_000, 30_000, 120_000, 300_000].entries()) {
    const began = clock.now();
    const step = Math.min(5_000, bound / 10);
    await untilDelivered(hook, index + 2, clock, step);
    const waited = clock.now() - began;
    assert.ok(Math.abs(waited - bound) <= bound * 0.2 + step, `attempt ${index + 2} after ${waited} ms`);
  }
  assert.equal(idsOf(hook), Array(6).fill('e1'));
  await clock.advance(60_000);
  assert.is(hook.posts.length, 6);
  hook.answer = () => 204;
  const { deliveryStatus } = await ada.modern('events/subscribe', subscription(hook.url), SEP);
  const { active, lastError } = deliveryStatus as JsonObject;
  assert.equal({ active, lastError }, { active: false, lastError: 'http_5xx' });
  await untilDelivered(hook, 8);
  assert.equal(idsOf(hook).slice(6), ['e1', 'e2']);
  await close();
  await hook.close();
});

test('R-85: an event that is declined is a dead letter, one that is rejected five times is a gap too, and the next ones follow', async () => {
  for (const profile of [SEP, undefined]) {
    const hook = await receiver();
    const { as, emit, clock, close } = deliveryStage([hook.origin]);
    const ada = await as('ada');
    await ada.modern('events/subscribe', subscription(hook.url), profile);
    const statuses: Readonly<Record<string, number>> = { e1: 410, e2: 413, e3: 404 };
    hook.answer = ({ id }) => statuses[id] ?? 200;
    for (const n of [1, 2, 3, 4]) await emit(n);
    const wanted = ['e1', 'e2', 'e3', 'e3', 'e3', 'e3', 'e3', ...(profile ? ['gap'] : []), 'e4'];
    // The longest of the four waits is two minutes, and each step of the clock takes real time.
    await untilDelivered(hook, wanted.length, clock, 30_000);
    assert.equal(
      hook.posts.map(({ id, body }) => String(body.type ?? id)),
      wanted,
    );
    const { truncated } = await ada.modern('events/subscribe', subscription(hook.url), profile);
    assert.is(truncated, profile === undefined, 'a client that knows no gap learns of it when it refreshes');
    assert.is((await ada.modern('events/subscribe', subscription(hook.url), profile)).truncated, false);
    await close();
    await hook.close();
  }
});

test('an endpoint that asks for time gets it, and its client learns that deliveries are delayed', async () => {
  const hook = await receiver();
  const { as, emit, clock, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  hook.answer = (_, response) => void response.writeHead(429, { 'retry-after': '60' }).end() as undefined;
  await emit(1);
  await untilDelivered(hook, 1);
  hook.answer = () => 200;
  await clock.advance(58_000);
  assert.is(hook.posts.length, 1);
  const { deliveryStatus } = await ada.modern('events/subscribe', subscription(hook.url), SEP);
  const { active, lastError, throttled, retryAfterMs } = deliveryStatus as JsonObject;
  assert.equal([active, lastError, throttled, retryAfterMs], [true, 'http_4xx', true, 60_000]);
  await untilDelivered(hook, 2);
  await close();
  await hook.close();
});

test('S-135: a challenge must be echoed: each other answer fails the subscription with its category', async () => {
  const table: readonly (readonly [string, Parameters<typeof receiver>[0] & object, string])[] = [
    ['no echo', (_, response) => void response.end('{}') as undefined, 'challenge_failed'],
    ['another challenge', (_, response) => void response.end('{"challenge":"x"}') as undefined, 'challenge_failed'],
    ['no JSON', (_, response) => void response.end('ok') as undefined, 'challenge_failed'],
    ['too long', (_, response) => void response.end(' '.repeat(20_000)) as undefined, 'challenge_failed'],
    ['a redirect', (_, response) => void response.writeHead(307, { location: '/' }).end() as undefined, 'http_4xx'],
    ['not found', () => 404, 'http_4xx'],
    ['an error', () => 500, 'http_5xx'],
    ['a reset', (_, __, request) => void request.socket.resetAndDestroy() as undefined, 'connection_refused'],
  ];
  for (const [title, answer, reason] of table) {
    const hook = await receiver(answer);
    const { as, emit, close } = deliveryStage([hook.origin]);
    const ada = await as('ada');
    for (const [profile, code] of [
      [SEP, -32027],
      [undefined, -32015],
    ] as const) {
      const error = await errorResponse(ada.modern('events/subscribe', subscription(hook.url), profile));
      assert.equal([error.code, error.data], [code, { reason }], title);
    }
    await emit(1);
    await settled();
    assert.equal(idsOf(hook), []);
    await close();
    await hook.close();
  }
});

test('S-135: one principal cannot use the challenges as a flood: five in a minute, and one for an endpoint at a time', async () => {
  const hook = await receiver(({ body }) => (body.type === undefined ? 200 : 403));
  const { as, clock, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  const subscribe = (path: string) =>
    errorResponse(ada.modern('events/subscribe', subscription(`${hook.origin}/${path}`), SEP));
  const codes = [];
  for (const path of ['a', 'b', 'c', 'd', 'e', 'f']) codes.push((await subscribe(path)).code);
  assert.equal(codes, [-32027, -32027, -32027, -32027, -32027, -32025]);
  await clock.advance(60_000);
  hook.answer = () => 200;
  const before = hook.challenges.length;
  await Promise.all([
    ada.modern('events/subscribe', subscription(hook.url), SEP),
    ada.modern('events/subscribe', subscription(hook.url, { arguments: { to: 'x' } }), SEP),
  ]);
  assert.is(hook.challenges.length, before + 1);
  await close();
  await hook.close();
});

test('S-136: a caller without rights gets no more: its receiver learns that the subscription has ended', async () => {
  const hook = await receiver();
  let allowed = true;
  const { as, emit, clock, close } = deliveryStage([hook.origin], {}, { allow: () => allowed });
  const ada = await as('ada');
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  await emit(1);
  await untilDelivered(hook, 1);
  allowed = false;
  await clock.advance(60_000);
  await emit(2);
  await untilDelivered(hook, 2);
  assert.is(hook.posts[1]?.body.type, 'terminated');
  assert.match(hook.posts[1]?.text ?? '', '-32024');
  assert.is((await errorResponse(ada.modern('events/unsubscribe', subscription(hook.url), SEP))).code, -32023);
  await close();
  await hook.close();
});

test('R-85, S-136: a subscription continues at its cursor, and learns of events that are gone', async () => {
  const hook = await receiver();
  const { as, emit, close, clock } = deliveryStage([hook.origin], {}, { retain: { events: 100 } });
  const ada = await as('ada');
  const { cursor } = await ada.modern('events/subscribe', subscription(hook.url), SEP);
  await ada.modern('events/unsubscribe', subscription(hook.url), SEP);
  for (const n of [1, 2]) await emit(n);
  const again = await ada.modern('events/subscribe', subscription(hook.url, { cursor: String(cursor) }), SEP);
  assert.is(again.truncated, false);
  await untilDelivered(hook, 2);
  assert.equal(idsOf(hook), ['e1', 'e2']);
  await ada.modern('events/unsubscribe', subscription(hook.url), SEP);
  const bob = await as('bob');
  const foreign = await bob.modern('events/subscribe', subscription(hook.url, { cursor: String(cursor) }), SEP);
  assert.is(foreign.truncated, true, 'a cursor of another principal shows nothing of before');
  await bob.modern('events/unsubscribe', subscription(hook.url), SEP);
  hook.answer = () => 500;
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  const before = hook.posts.length;
  for (let n = 3; n <= 400; n += 1) await emit(n);
  hook.answer = () => 200;
  await untilDelivered(hook, before + 4, clock, 1_000);
  const bodies = hook.posts.slice(before).map(({ id, body }) => String(body.type ?? id));
  assert.ok(bodies.includes('gap'), bodies.slice(0, 6).join(' '));
  await close();
  await hook.close();
});

test('R-84: a subscription outlives its process: the next one delivers what the first one had not, and repeats little', async () => {
  const hook = await receiver();
  const store = new TestStore();
  const first = deliveryStage([hook.origin], { store });
  const ada = await first.as('ada');
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  await first.emit(1);
  await untilDelivered(hook, 1);
  hook.answer = () => 500;
  await first.emit(2);
  await first.emit(3);
  await untilDelivered(hook, 2);
  await first.close();
  hook.answer = () => 200;
  const second = deliveryStage([hook.origin], { store }, {}, first.clock);
  await second.as('bob');
  await untilDelivered(hook, 4);
  assert.equal(idsOf(hook), ['e1', 'e2', 'e2', 'e3']);
  assert.is(hook.challenges.length, 1, 'it was verified before');
  await second.close();
  await hook.close();
});
