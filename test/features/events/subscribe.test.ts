/** `client.subscribe`: a subscription is refreshed in time, shows how it goes, and continues where it was after its grant has ended. */
import { createServer as listen } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as assert from 'uvu/assert';
import {
  CallbackSubscription,
  type SubscribeOptions,
  type SubscriptionHost,
} from '../../../src/client/callback-subscription.ts';
import { ErrorResponse } from '../../../src/client/client-errors.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { type ReceivedEvent, receiver } from '../../../src/webhooks.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { eventStage, PAYLOAD } from './support.ts';

const test = suite('subscriptions of a client');

/** A receiver at a port of this machine, by the wall clock as the server's. */
async function inbox(secrets: () => readonly string[], clock: SimulatedClock) {
  const events: ReceivedEvent[] = [];
  const hook = receiver({ secrets, clock, onEvent: (event) => void events.push(event) });
  const server = listen(hook.node);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    events,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

for (const revision of ['2026-07-28', '2025-06-18'])
  test(`${revision}: events reach the receiver of the subscription, which is refreshed, until it is unsubscribed`, async () => {
    const clock = new SimulatedClock(1_000_000);
    const box = await inbox(() => secrets, clock);
    const secrets: string[] = [];
    const origin = new URL(box.url).origin;
    const { server, as } = eventStage({ events: { callbacks: { allow: [origin] } }, store: new TestStore() }, clock);
    const note = server.event('note', { description: 'd', payload: PAYLOAD });
    const client = await as('ada', { clock });
    if (revision !== '2026-07-28') await client.initialize(revision);
    // The receiver must know the secret before the challenge comes.
    const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
    secrets.push(secret);
    const changes: string[] = [];
    const subscription = await client.subscribe(
      'note',
      {},
      {
        ...{ url: box.url, secret, ttlMs: 600_000 },
        onChange: ({ state }) => void changes.push(state),
      },
    );
    assert.equal([subscription.state, subscription.error, subscription.secret], ['active', undefined, secret]);
    assert.is(subscription.refreshBefore, clock.date() + 600_000);
    await note.emit({ n: 1 }, { id: 'a' });
    await until(() => box.events.length === 1);
    const [first] = box.events;
    assert.equal([first?.id, first?.subscription], ['a', subscription.id]);
    subscription.received(first?.cursor);
    assert.is(subscription.cursor, first?.cursor);
    // Three times the grant.
    for (let n = 0; n < 6; n += 1) {
      await clock.advance(300_000);
      await until(() => changes.length === n + 2);
    }
    assert.is(subscription.state, 'active');
    assert.is(subscription.delivery?.active, true);
    await note.emit({ n: 2 }, { id: 'b' });
    await until(() => box.events.length === 2);
    await subscription.unsubscribe();
    await subscription.unsubscribe();
    assert.is(subscription.state, 'ended');
    await note.emit({ n: 3 }, { id: 'c' });
    await settled();
    assert.is(box.events.length, 2);
    await server.close();
    box.close();
  });

/** A server that answers each `events/subscribe` as a test says; the last answer is repeated. */
function played(
  answers: readonly ((params: JsonObject) => unknown)[],
  options: Partial<SubscribeOptions> = {},
  clock = new SimulatedClock(1_000_000),
) {
  const sent: JsonObject[] = [];
  const reported: unknown[] = [];
  let close = (): void => {};
  const host: SubscriptionHost = {
    clock,
    async send(method, params) {
      if (method === 'events/subscribe') sent.push(params);
      const answer = answers[Math.min(sent.length, answers.length) - 1]?.(params) ?? {};
      if (answer instanceof Error) throw answer;
      return answer;
    },
    closes(end) {
      close = end;
      return () => {};
    },
    report: (error) => void reported.push(error),
  };
  const url = 'https://mine.example.com/events';
  const subscription = new CallbackSubscription('note', {}, { url, ...options }, host);
  const grant = (ms: number | null, more: JsonObject = {}) => ({
    ...{ id: 'sub', refreshBefore: ms === null ? null : new Date(clock.date() + ms).toISOString(), truncated: false },
    ...more,
  });
  return { subscription, sent, clock, reported, grant, close: () => close() };
}

const failure = (code: number): ErrorResponse => new ErrorResponse('played', code, 'no', undefined);

test('R-95: a refresh is sent at half of the grant; it is tried again, and what has lapsed continues at the last cursor', async () => {
  const seen: string[] = [];
  let down = false;
  const stage = played(
    [() => (down ? new Error('no connection') : stage.grant(600_000, { cursor: `c${stage.sent.length}` }))],
    {
      ttlMs: 600_000,
      since: 'c0',
      onChange: ({ state }) => void seen.push(state),
    },
  );
  const { subscription, sent, clock } = stage;
  await subscription.begin();
  assert.match(subscription.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.equal([sent[0]?.cursor, sent[0]?.ttlMs, subscription.cursor], ['c0', 600_000, 'c1']);
  await clock.advance(299_999);
  assert.is(sent.length, 1);
  await clock.advance(1);
  assert.equal([sent.length, sent[1]?.cursor, subscription.cursor], [2, 'c1', 'c2']);
  down = true;
  await clock.advance(300_000);
  assert.equal([subscription.state, subscription.error?.message], ['failing', 'no connection']);
  subscription.received('c2.5');
  await clock.advance(300_000);
  assert.is(subscription.state, 'lapsed');
  // After 1, 2, 4, 8, 16, 32 seconds, and then each minute.
  assert.is(sent.length, 3 + 6 + 3);
  down = false;
  await clock.advance(60_000);
  assert.equal([subscription.state, sent.at(-1)?.cursor, subscription.error], ['active', 'c2.5', undefined]);
  assert.equal([...new Set(sent.map(({ delivery }) => JSON.stringify(delivery)))].length, 1);
  assert.equal([...new Set(seen)], ['active', 'failing', 'lapsed']);
  stage.close();
  assert.is(subscription.state, 'ended');
  assert.is(clock.timers, 0);
});

test('R-95: a lapsed subscription of a real server gets what happened meanwhile, also by another process with its secret and cursor', async () => {
  const clock = new SimulatedClock(1_000_000);
  const secret = `whsec_${Buffer.alloc(32, 4).toString('base64')}`;
  const box = await inbox(() => [secret], clock);
  const store = new TestStore();
  const { server, as } = eventStage({ events: { callbacks: { allow: [new URL(box.url).origin] } }, store }, clock);
  const note = server.event('note', { description: 'd', payload: PAYLOAD });
  const first = await as('ada', { clock });
  const subscription = await first.subscribe('note', {}, { url: box.url, secret, ttlMs: 60_000 });
  await note.emit({ n: 1 }, { id: 'a' });
  await until(() => box.events.length === 1);
  const { cursor } = box.events[0] ?? {};
  await first.close();
  assert.is(subscription.state, 'ended');
  await clock.advance(120_000);
  await note.emit({ n: 2 }, { id: 'b' });
  await settled();
  assert.is(box.events.length, 1);
  const next = await as('ada', { clock });
  const again = await next.subscribe('note', {}, { url: box.url, secret, since: cursor });
  await until(() => box.events.length === 2);
  assert.equal([box.events[1]?.id, again.id], ['b', subscription.id]);
  await again.unsubscribe();
  await server.close();
  box.close();
});

test('the first answer decides: an error rejects, of either profile, and leaves no timer', async () => {
  for (const answer of [
    failure(-32024),
    failure(-32012),
    failure(-32027),
    new Error('no connection'),
    {},
    { id: 'a', refreshBefore: 'x' },
  ]) {
    const { subscription, clock } = played([() => answer]);
    await rejection(subscription.begin());
    assert.equal([subscription.state, clock.timers], ['ended', 0]);
  }
});

test('a refresh that is rejected for good ends the subscription; one whose endpoint fails is tried again', async () => {
  for (const code of [-32024, -32012, -32602, -32026, -32014]) {
    const stage = played([() => stage.grant(60_000), () => failure(code)]);
    await stage.subscription.begin();
    await stage.clock.advance(30_000);
    assert.equal([stage.subscription.state, stage.clock.timers], ['ended', 0], String(code));
    assert.match(stage.subscription.error?.message ?? '', String(code));
  }
  // A type that is not there may come back while its server is deployed.
  for (const code of [-32027, -32015, -32025, -32013, -32603, -32601, -32023, -32011]) {
    const stage = played([() => stage.grant(60_000), () => failure(code), () => stage.grant(60_000)]);
    await stage.subscription.begin();
    await stage.clock.advance(30_000);
    assert.is(stage.subscription.state, 'failing');
    await stage.clock.advance(1_000);
    assert.is(stage.subscription.state, 'active');
    stage.close();
  }
});

test('a type that stays away ends the subscription with its grant', async () => {
  const stage = played([() => stage.grant(60_000), () => failure(-32023)]);
  await stage.subscription.begin();
  await stage.clock.advance(59_000);
  assert.is(stage.subscription.state, 'failing');
  await stage.clock.advance(60_000);
  assert.equal([stage.subscription.state, stage.clock.timers], ['ended', 0]);
});

test('a clock that is wrong causes no flood: a grant that seems to be over lasts a minute, and none lasts longer than the wish', async () => {
  const past = played([() => past.grant(-3_600_000)]);
  await past.subscription.begin();
  await past.clock.advance(600_000);
  assert.is(past.sent.length, 1 + 20);
  past.close();
  const ahead = played([() => ahead.grant(3_600_000 + 60_000)], { ttlMs: 60_000 });
  await ahead.subscription.begin();
  await ahead.clock.advance(60_000);
  assert.is(ahead.sent.length, 3);
  ahead.close();
  const tiny = played([() => tiny.grant(1)]);
  await tiny.subscription.begin();
  await tiny.clock.advance(10_000);
  assert.is(tiny.sent.length, 11);
  tiny.close();
});

test('a subscription without an end is refreshed each day, which shows its delivery', async () => {
  const deliveryStatus = { active: false, lastError: 'http_5xx', failedSince: '2026-11-29T12:00:00Z' };
  const stage = played([() => stage.grant(null), () => stage.grant(null, { deliveryStatus })], { ttlMs: null });
  await stage.subscription.begin();
  assert.equal([stage.subscription.refreshBefore, stage.sent[0]?.ttlMs], [undefined, null]);
  await stage.clock.advance(86_400_000);
  assert.is(stage.sent.length, 2);
  assert.equal(stage.subscription.delivery, { ...deliveryStatus, lastDeliveryAt: undefined });
  stage.close();
});

test('onGap learns what was skipped, and a callback that throws is reported', async () => {
  const gaps: unknown[] = [];
  const stage = played([() => stage.grant(60_000, { truncated: true, cursor: 'c9' })], {
    onGap: (cursor) => void gaps.push(cursor),
    onChange() {
      throw new Error('mine');
    },
  });
  await stage.subscription.begin();
  assert.equal([gaps, stage.subscription.state, String(stage.reported)], [['c9'], 'active', 'Error: mine']);
  stage.close();
});

test('unsubscribing what has ended at the server succeeds, and other failures are errors', async () => {
  for (const [answer, fails] of [
    [failure(-32023), false],
    [failure(-32011), false],
    [failure(-32603), true],
  ] as const) {
    const stage = played([
      () => (stage.sent.length === 1 && stage.subscription.state !== 'ended' ? stage.grant(60_000) : answer),
    ]);
    await stage.subscription.begin();
    const ended = stage.subscription.unsubscribe();
    if (fails) await rejection(ended);
    else await ended;
    assert.equal([stage.subscription.state, stage.clock.timers], ['ended', 0]);
  }
});
