/** Subscriptions that wait for an event: which of them the feed of a topic compares with it, and which it wakes. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import type { RestingSubscription, Selected } from '../../../../src/features/events/delivery/resting-subscriptions.ts';
import { TopicFeed } from '../../../../src/features/events/delivery/topic-feed.ts';
import { frozen, type TopicEvent } from '../../../../src/features/events/topic-document.ts';
import { SimulatedClock } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { TestStore } from '../../../harness/test-store.ts';
import { until } from '../../../harness/wait.ts';
import { deliveryStage, idsOf, receiver, SEP, subscription, untilDelivered } from './support.ts';

const test = suite('subscriptions that wait');

class Resting implements RestingSubscription {
  restsAt: number | undefined;
  asked = 0;
  readonly woken: number[] = [];
  readonly saved: number[] = [];
  readonly principal: string;
  readonly #selected: Selected | undefined;
  readonly #wants: (data: JsonObject) => boolean;

  constructor(principal: string, selected: Selected | undefined, wants: (data: JsonObject) => boolean) {
    this.principal = principal;
    this.#selected = selected;
    this.#wants = wants;
  }

  selects(): Selected | undefined {
    return this.#selected;
  }

  wants({ data }: TopicEvent): boolean {
    this.asked += 1;
    return this.#wants(data);
  }

  wake(upto: number): void {
    this.woken.push(upto);
  }

  advance(upto: number): void {
    this.saved.push(upto);
  }
}

/** A topic in memory with its feed. */
function topic(hasMatch = false, clock = new SimulatedClock()) {
  const events: TopicEvent[] = [];
  const subscriptions: Resting[] = [];
  let news = (): void => {};
  const feed = new TopicFeed(
    {
      pace: clock,
      of: (principal) => subscriptions.filter((each) => each.principal === principal),
      hasMatch: () => hasMatch,
      saves: () => ({ events: 10, ms: 60_000 }),
      read: async (after) => ({ epoch: 'a', events: events.slice(after), head: events.length, purged: 0 }),
      onNews: (listener) => {
        news = listener;
        return () => {};
      },
      failed: (error) => assert.unreachable(String(error)),
      later: () => {},
    },
    'a',
    0,
  );
  return {
    feed,
    rest(subscription: Resting): Resting {
      subscriptions.push(subscription);
      assert.ok(feed.rest(subscription, 'a', events.length));
      return subscription;
    },
    async emit(data: JsonObject, owner?: string): Promise<void> {
      const seq = events.length + 1;
      const shared = { id: `e${seq}`, at: 0, committed: 0, trace: undefined, line: '', bytes: 1 };
      events.push({ ...shared, seq, data: frozen(data), ...(owner !== undefined && { owner }) });
      news();
      const probe = new Resting('', undefined, () => false);
      await until(() => feed.rest(probe, 'a', seq) && feed.positionOf(probe) === seq);
      feed.leave(probe);
    },
  };
}

const forValue = (n: string | number): Resting =>
  new Resting(`of ${n}`, { member: 'n', value: n }, (data) => data.n === n);

test('a subscription that names another value of a member is not asked about an event', async () => {
  const { rest, emit, feed } = topic();
  const all = Array.from({ length: 1_000 }, (_, n) => rest(forValue(n)));
  const twin = rest(forValue(7));
  const any = rest(new Resting('any', undefined, () => true));
  await emit({ n: 7 });
  await emit({ n: 'unknown' });
  await emit({});
  const asked = [...all, twin].filter((each) => each.asked > 0);
  assert.equal(asked, [all[7], twin]);
  assert.equal([all[7]?.woken, twin.woken, any.woken], [[0], [0], [0]]);
  for (const each of all) if (each !== all[7]) assert.is(feed.positionOf(each), 3);
  const [eighth] = all.slice(8);
  if (eighth) feed.leave(eighth);
  await emit({ n: 8 });
  assert.equal([all[8]?.asked, all[8]?.restsAt], [0, undefined]);
});

test('an event for one principal is compared with the subscriptions of that principal only', async () => {
  const { rest, emit } = topic();
  const [ada, bob] = ['ada', 'bob'].map((name) => rest(new Resting(name, undefined, () => true)));
  await emit({ n: 1 }, 'bob');
  assert.equal([ada?.asked, bob?.asked, bob?.woken], [0, 1, [0]]);
});

test('each subscription is asked if a function of the type decides', async () => {
  const { rest, emit } = topic(true);
  const all = Array.from({ length: 10 }, (_, n) => rest(forValue(n)));
  await emit({ n: 99 });
  assert.equal(
    all.map(({ asked }) => asked),
    Array(10).fill(1),
  );
});

test('a value is found by what it is: a text is no number, and null and an object are neither', async () => {
  const { rest, emit } = topic();
  const [number, text, zero] = [rest(forValue(1)), rest(forValue('1')), rest(forValue(0))];
  for (const n of ['1', null, { n: 1 }, [1]]) await emit({ n });
  assert.equal([number.asked, text.woken.length, zero.asked], [0, 1, 0]);
  await emit({ n: -0 });
  assert.is(zero.woken.length, 1);
});

test('a subscription that waits stores its position after a part of the retention, in events or in time', async () => {
  const clock = new SimulatedClock();
  const { rest, emit, feed } = topic(false, clock);
  const waiting = rest(forValue(1));
  for (let n = 0; n < 12; n += 1) await emit({ n: 2 });
  assert.equal(waiting.saved, [10]);
  await clock.advance(59_000);
  feed.renew();
  assert.equal(waiting.saved, [10]);
  await clock.advance(1_000);
  feed.renew();
  feed.renew();
  assert.equal(waiting.saved, [10, 12]);
});

test('R-85: a subscription from before the first event of its topic has no gap, whichever event is its first', async () => {
  const hook = await receiver();
  const { as, emit, close } = deliveryStage([hook.origin], { store: new TestStore() });
  const ada = await as('ada');
  await ada.modern('events/subscribe', subscription(hook.url, { arguments: { to: 'ada' } }), SEP);
  await emit(1, { to: 'bob' });
  await emit(2, { to: 'bob' });
  await emit(3, { to: 'ada' });
  await untilDelivered(hook, 1);
  assert.equal(idsOf(hook), ['e3']);
  await close();
  await hook.close();
});
