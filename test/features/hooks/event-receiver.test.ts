/** The receiver of event webhooks: what is genuine is taken once, challenges are echoed, and nothing of a stranger passes. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { readWebhookSecret, signWebhook } from '../../../src/core/kernel/standard-webhooks.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { type ReceivedEvent, type ReceiverOptions, receiver } from '../../../src/webhooks.ts';
import { Raw } from '../../core/http/raw.ts';
import { suite } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';

const test = suite('the receiver of events');

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
const NOW = new SimulatedClock().date();

interface Sent {
  readonly id?: string;
  readonly secrets?: readonly string[];
  /** Seconds since 1970. */
  readonly at?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
}

const event = (id: string, more: object = {}): object => ({
  ...{ eventId: id, name: 'note', timestamp: '2026-11-29T12:00:00Z', data: { n: 1 }, cursor: `after ${id}` },
  ...more,
});

function headersOf(
  text: string | Uint8Array,
  { id = 'e1', secrets = [SECRET], at = Math.floor(NOW / 1_000), headers }: Sent = {},
) {
  const keys = secrets.flatMap((each) => readWebhookSecret(each) ?? []);
  return {
    ...{ 'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': String(at) },
    ...{ 'webhook-signature': signWebhook(keys, id, at, text), 'x-mcp-subscription-id': 'sub_1' },
    ...headers,
  };
}

function stage(options: Partial<ReceiverOptions> = {}) {
  const events: ReceivedEvent[] = [];
  const logged: string[] = [];
  const clock = new SimulatedClock();
  const hook = receiver({
    ...{ secrets: SECRET, clock, log: (_, message) => void logged.push(message) },
    onEvent: (each) => void events.push(each),
    ...options,
  });
  return {
    ...{ hook, events, logged, clock },
    async send(body: unknown, sent: Sent = {}): Promise<Response> {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const { method = 'POST' } = sent;
      const headers = headersOf(text, sent);
      return hook.fetch(
        new Request('https://mine.example.com/events', { method, headers, ...(method === 'POST' && { body: text }) }),
      );
    },
  };
}

test('an event is passed on as it came, and the server gets its answer when it is taken', async () => {
  let taken = (): void => {};
  const seen: ReceivedEvent[] = [];
  const { send, clock } = stage({
    onEvent: (each) => {
      seen.push(each);
      return new Promise<void>((resolve) => {
        taken = resolve;
      });
    },
  });
  const answer = send(event('e1'));
  await until(() => seen.length === 1);
  assert.equal(seen, [
    {
      ...{ id: 'e1', name: 'note', timestamp: '2026-11-29T12:00:00Z', data: { n: 1 } },
      ...{ cursor: 'after e1', subscription: 'sub_1' },
    },
  ]);
  taken();
  assert.is((await answer).status, 204);
  // One that is not taken in time comes again, and waits for the same work.
  const late = send(event('e2'), { id: 'e2' });
  await until(() => seen.length === 2);
  await clock.advance(5_000);
  assert.equal([(await late).status, (await late).headers.get('retry-after')], [503, '1']);
  const again = send(event('e2'), { id: 'e2' });
  taken();
  assert.is((await again).status, 204);
  assert.is(seen.length, 2);
});

test('a challenge is echoed if a secret has signed it, and no callback learns of it', async () => {
  const { send, events } = stage();
  const body = { type: 'verification', challenge: 'nonce' };
  const answer = await send(body, { id: 'msg_verification_1' });
  assert.equal([answer.status, await answer.json()], [200, { challenge: 'nonce' }]);
  assert.is((await send(body, { secrets: [OTHER] })).status, 401);
  for (const challenge of [undefined, '', 5, 'x'.repeat(4_097)])
    assert.is((await send({ type: 'verification', challenge })).status, 400);
  assert.equal(events, []);
});

test('a gap and an end reach their callbacks once, by the id of their message; what is unknown is accepted', async () => {
  const heard: unknown[] = [];
  const { send, events } = stage({ onGap: (gap) => void heard.push(gap), onTerminated: (end) => void heard.push(end) });
  const gap = { type: 'gap', cursor: 'c2' };
  for (const id of ['msg_gap_1', 'msg_gap_1', 'msg_gap_2']) assert.is((await send(gap, { id })).status, 204);
  const error = { code: -32024, message: 'Forbidden', data: { reason: 'Access revoked' } };
  assert.is((await send({ type: 'terminated', error }, { id: 'msg_terminated_1' })).status, 204);
  assert.is((await send({ type: 'later', more: 1 }, { id: 'msg_later_1' })).status, 204);
  const one = { cursor: 'c2', subscription: 'sub_1' };
  assert.equal(heard, [one, one, { error, subscription: 'sub_1' }]);
  // Without callbacks they are accepted, too.
  assert.is((await stage().send(gap, { id: 'msg_gap_3' })).status, 204);
  assert.equal(events, []);
});

test('S-160: a request that no secret has signed within five minutes gets 401 without a reason, and reaches no callback and no log', async () => {
  const { send, hook, events, logged } = stage({ secrets: [OTHER, SECRET] });
  const at = Math.floor(NOW / 1_000);
  for (const sent of [
    ...[{ secrets: [`whsec_${Buffer.alloc(32, 8).toString('base64')}`] }, { at: at - 301 }, { at: at + 301 }],
    ...['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => ({ headers: { [name]: '' } })),
    ...[{ headers: { 'webhook-id': 'other' } }, { headers: { 'webhook-timestamp': `${at}.5` } }],
    ...['v1', 'v1,', 'v1,é', 'v2,abc', 'v1a,abc', 'x'.repeat(10_000)].map((value) => ({
      headers: { 'webhook-signature': value },
    })),
  ]) {
    const answer = await send(event('e1'), sent);
    assert.equal([answer.status, await answer.text()], [401, ''], JSON.stringify(sent));
  }
  const text = JSON.stringify(event('e1'));
  const changed = new Request('https://mine.example.com/', {
    method: 'POST',
    headers: headersOf(text),
    body: `${text} `,
  });
  assert.is((await hook.fetch(changed)).status, 401);
  assert.equal([events, logged], [[], []]);
  for (const sent of [{ at: at - 300 }, { at: at + 300, id: 'e2' }, { id: 'e3', secrets: [OTHER] }])
    assert.is((await send(event(sent.id ?? 'e1'), sent)).status, 204);
});

test('S-160: a header that comes twice signs nothing, and a further signature that is wrong takes nothing away', async () => {
  const { hook, events } = stage();
  const text = JSON.stringify(event('e1'));
  const sendWith = async (change: (headers: Headers) => void): Promise<number> => {
    const headers = new Headers(headersOf(text));
    change(headers);
    return (await hook.fetch(new Request('https://mine.example.com/', { method: 'POST', headers, body: text }))).status;
  };
  const at = String(Math.floor(NOW / 1_000));
  assert.is(await sendWith((each) => each.append('webhook-timestamp', at)), 401);
  assert.is(await sendWith((each) => each.append('webhook-id', 'e1')), 401);
  assert.is(events.length, 0);
  const signature = headersOf(text)['webhook-signature'];
  assert.is(await sendWith((each) => each.set('webhook-signature', `v1a,x v1,wrong ${signature}`)), 204);
  assert.is(events.length, 1);
});

test('S-160: a body is read within its bounds, and one that is no event or no JSON gets 400', async () => {
  const { send, hook, events, clock } = stage({ maxBytes: 1_000 });
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const wrong = [
    ...['', 'null', '[]', '"text"', '{', '{"eventId":"e1"}', '{"__proto__":{}}', '\u0000', '{"type":5}'],
    ...[{ eventId: '' }, { eventId: 5 }, { name: '' }, { timestamp: 5 }, { data: [] }, { data: null }].map((more) =>
      JSON.stringify(event('e1', more)),
    ),
  ];
  for (const body of wrong) assert.is((await send(body)).status, 400, body);
  assert.is((await stage().send(deep)).status, 400);
  assert.is((await send(event('e1', { data: { text: 'x'.repeat(1_000) } }))).status, 413);
  assert.is((await send(event('e1'), { method: 'GET' })).status, 405);
  assert.is((await send(event('e1'), { headers: { 'content-encoding': 'gzip' } })).status, 415);
  const stream = (pull: (controller: ReadableStreamDefaultController) => void) => {
    const init = {
      method: 'POST',
      headers: headersOf(''),
      duplex: 'half',
      body: new ReadableStream({ pull }),
    } as const;
    return hook.fetch(new Request('https://mine.example.com/', init));
  };
  assert.is((await stream((each) => each.enqueue(Buffer.alloc(600)))).status, 413);
  const silent = stream(() => new Promise(() => {}));
  await clock.advance(5_000);
  assert.is((await silent).status, 408);
  assert.is((await stream((each) => each.error(new Error('reset')))).status, 400);
  assert.equal(events, []);
});

test('R-94: an event is passed on once, in turn and at the same moment, unless its callback fails; then it comes again', async () => {
  let fails = true;
  const taken: string[] = [];
  const { send, logged } = stage({
    onEvent: async ({ id }) => {
      await Promise.resolve();
      if (id === 'e2' && fails) throw new Error('the queue is full');
      taken.push(id);
    },
  });
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(event('e1'))));
  answers.push(await send(event('e1'), { at: Math.floor(NOW / 1_000) + 1 }));
  assert.equal([...new Set(answers.map(({ status }) => status))], [204]);
  assert.is((await send(event('e2'), { id: 'e2' })).status, 503);
  assert.match(logged.join(), /the queue is full/);
  fails = false;
  assert.is((await send(event('e2'), { id: 'e2' })).status, 204);
  assert.equal(taken, ['e1', 'e2']);
});

test('R-94: another message with the event is a repeat, its secret tells subscriptions apart, and a new secret forgets nothing', async () => {
  const { send, events } = stage({ secrets: [OTHER, SECRET] });
  await send(event('e1'));
  // SEP-3415 names each message in the header; older servers the event.
  await send(event('e1'), { id: 'msg_2' });
  // Nothing signs the header of the subscription: a recorded delivery is not another one under another id.
  await send(event('e1'), { headers: { 'x-mcp-subscription-id': 'sub_2' } });
  assert.is(events.length, 1);
  await send(event('e1'), { secrets: [OTHER] });
  assert.is(events.length, 2);
  // During a rotation the server signs with both.
  await send(event('e3'), { id: 'e3', secrets: [SECRET] });
  await send(event('e3'), { id: 'e3', secrets: [OTHER, SECRET] });
  assert.is(events.length, 3);
});

test('R-94: a durable memory recognizes what came before a restart, and one that fails loses nothing', async () => {
  const received = new Set<string>();
  const [first, next] = [stage({ received }), stage({ received })];
  await first.send(event('e1'));
  assert.is((await next.send(event('e1'))).status, 204);
  assert.equal([first.events.length, next.events.length, received.size], [1, 0, 1]);
  for (const key of received) assert.match(key, /^[\w-]{43}$/);
  const failing = { has: () => false, add: () => Promise.reject(new Error('disk full')) };
  const third = stage({ received: failing });
  assert.is((await third.send(event('e1'))).status, 204);
  assert.match(third.logged.join(), /could not be remembered: disk full/);
  const down = stage({ received: { ...failing, has: () => Promise.reject(new Error('no connection')) } });
  assert.is((await down.send(event('e1'))).status, 503);
  assert.is(down.events.length, 0);
});

test.full('the memory of the receiver is bounded', async () => {
  const { send, events } = stage();
  for (let n = 0; n < 10_001; n += 1) await send(event(`e${n}`), { id: `e${n}` });
  await send(event('e10000'), { id: 'e10000' });
  await send(event('e0'), { id: 'e0' });
  assert.is(events.length, 10_002);
});

test('a function finds the secrets of a subscription; without any, and if it fails, nothing is taken', async () => {
  const asked: unknown[] = [];
  const { send, events } = stage({
    secrets: (subscription) => {
      asked.push(subscription);
      if (subscription === 'sub_2') throw new Error('no database');
      if (subscription === 'sub_3') return [];
      return subscription === 'sub_1' ? Promise.resolve([SECRET, 'nothing']) : undefined;
    },
  });
  assert.is((await send(event('e1'))).status, 204);
  assert.is((await send(event('e2'), { headers: { 'x-mcp-subscription-id': 'sub_2' } })).status, 503);
  assert.is((await send(event('e3'), { headers: { 'x-mcp-subscription-id': 'sub_3' } })).status, 401);
  // It is not known yet: its delivery has overtaken the answer to its request.
  assert.is((await send(event('e4'), { headers: { 'x-mcp-subscription-id': 'sub_4' } })).status, 503);
  assert.equal([asked, events.length], [['sub_1', 'sub_2', 'sub_3', 'sub_4'], 1]);
});

test('S-160: on a socket of node:http, strangers get answers within bounds, and a parsed body is an error of the program', async () => {
  const { hook, events, logged } = stage({ maxBytes: 1_000, clock: systemClock });
  let parses = false;
  let cuts = 0;
  const server = createServer(async (request, response) => {
    if (parses) await once(request.resume(), 'end');
    await hook.node(request, response);
    if (request.destroyed && !request.complete) cuts += 1;
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;
  const text = JSON.stringify(event('e1'));
  const headers = headersOf(text, { at: Math.floor(Date.now() / 1_000) });
  const post = async (body: string, more: object = {}): Promise<number> => {
    const response = await fetch(url, { method: 'POST', body, headers: { ...headers, ...more } });
    await response.arrayBuffer();
    return response.status;
  };
  assert.equal([await post(text), await post(`${text} `), (await fetch(url)).status], [204, 401, 405]);
  assert.is(events.length, 1);
  const long = await Raw.open(url);
  long.write(`POST /events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'x'.repeat(1_001)}`);
  assert.is((await long.response()).status, 413);
  long.socket.destroy();
  const cut = await Raw.open(url);
  cut.write('POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{');
  cut.socket.destroy();
  await until(() => cuts === 1);
  parses = true;
  assert.is(await post(text), 500);
  assert.match(logged.join(), /Mount the receiver before any body parser/);
  parses = false;
  assert.is(await post(text), 204);
  server.closeAllConnections();
  server.close();
});
