/** The feed of a topic: whatever the positions at which subscriptions rest, none of them misses an event. */
import * as assert from 'uvu/assert';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import type { TopicEvent } from '../../../../src/features/events/delivery/delivered-topics.ts';
import type { RestingSubscription } from '../../../../src/features/events/delivery/resting-subscriptions.ts';
import { TopicFeed } from '../../../../src/features/events/delivery/topic-feed.ts';
import { settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { firstSeed } from '../../../harness/scale.ts';
import { Random } from '../../../system/simulation/random.ts';

const test = suite('feeds of topics');

/** A subscription that wants every event, and has seen those up to its position. */
class Subscriber implements RestingSubscription {
  position: number;
  rests = false;
  readonly principal = '';
  restsAt: number | undefined;

  constructor(position: number) {
    this.position = position;
  }

  selects(): undefined {
    return undefined;
  }

  wants(): boolean {
    return true;
  }

  wake(upto: number): void {
    this.rests = false;
    assert.ok(upto <= this.position, `it has seen up to ${this.position}, and is told that it has seen up to ${upto}`);
  }

  advance(): void {}
}

/** A topic of which a feed reads, and its news. */
class FedTopic {
  head = 0;
  #announce = (): void => {};
  readonly feed = new TopicFeed(
    {
      pace: systemClock,
      of: () => [],
      hasMatch: () => false,
      saves: () => ({ events: 500, ms: 60_000 }),
      read: async (after) => {
        const events = Array.from({ length: this.head - after }, (_, at) => eventAt(after + at + 1));
        return { epoch: 'e', events, head: this.head, purged: 0 };
      },
      onNews: (listener) => {
        this.#announce = listener;
        return () => {};
      },
      failed: (error) => assert.unreachable(String(error)),
      later: () => {},
    },
    'e',
    0,
  );

  append(): void {
    this.head += 1;
    this.#announce();
  }

  rest(subscriber: Subscriber): void {
    subscriber.rests = this.feed.rest(subscriber, 'e', subscriber.position);
  }
}

function eventAt(seq: number): TopicEvent {
  const at = { at: 0, committed: 0 };
  return { seq, id: `e${seq}`, ...at, trace: undefined, owner: undefined, data: {}, line: '', bytes: 0 };
}

test('R-84: a subscription that rests after one that has seen more is not taken for one that has seen as much', async () => {
  const topic = new FedTopic();
  for (let n = 0; n < 5; n += 1) topic.append();
  const [ahead, behind] = [new Subscriber(5), new Subscriber(3)];
  topic.rest(ahead);
  topic.rest(behind);
  assert.is(behind.rests, false);
  behind.position = 5;
  topic.rest(behind);
  assert.ok(behind.rests);
  topic.append();
  await settled();
  assert.equal([ahead.rests, behind.rests], [false, false]);
});

test('R-84: in any order of events, rests and reads, a subscription rests only at the end of what it has seen', async () => {
  const seed = firstSeed('quick');
  const random = new Random(seed);
  const topic = new FedTopic();
  const all = [new Subscriber(0), new Subscriber(0), new Subscriber(0)];
  for (let step = 0; step < 2_000; step += 1) {
    const subscriber = random.pick([all[0] ?? new Subscriber(0), ...all]);
    if (random.chance(0.3)) topic.append();
    // One that does not rest reads on, to the end of what it knows, or less.
    if (!subscriber.rests && random.chance(0.6)) subscriber.position = random.between(subscriber.position, topic.head);
    if (!subscriber.rests && random.chance(0.5)) topic.rest(subscriber);
    if (random.chance(0.3)) await settled();
  }
  await settled();
  for (const { rests, position } of all)
    assert.ok(
      !rests || position === topic.head,
      `seed ${seed}: rests at ${position}, and the topic is at ${topic.head}`,
    );
});
