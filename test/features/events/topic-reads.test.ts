/** Reads of a topic that other nodes append to: a reader that has news of an event gets it, whatever else is being read. */
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { StoreAnswer } from '../../../src/core/store/store.ts';
import { PartCache } from '../../../src/features/events/part-cache.ts';
import { Topic } from '../../../src/features/events/topic.ts';
import { suite } from '../../harness/door.ts';
import { type OtherQuery, TestStore } from '../../harness/test-store.ts';

const test = suite('reads of topics');

/** A store whose answers can be held back after they were read. */
class SlowStore extends TestStore {
  held: Promise<void> | undefined;

  override async read(query: OtherQuery): Promise<StoreAnswer> {
    const { held } = this;
    const answer = await super.read(query);
    await held;
    return answer;
  }
}

function topicIn(store: TestStore): Topic {
  return new Topic({
    ...{ name: 'note', by: '', store, clock: systemClock, parts: new PartCache(), epoch: '', shared: true },
    retain: { events: 10_000, ms: 86_400_000, bytes: 16 * 1024 ** 2 },
    admit: async () => {},
    committed: () => {},
  });
}

const event = (id: string) => ({ id, text: '{}', data: {}, at: 1, trace: undefined, owner: undefined });

for (const where of ['another node', 'this node'] as const)
  test(`R-90: a reader that comes after an event of ${where} gets it, also while an older read is on its way`, async () => {
    const inner = memoryStore();
    const store = new SlowStore(inner);
    const reader = topicIn(store);
    const writer = where === 'this node' ? reader : topicIn(new TestStore(inner));
    await writer.append(event('e1'), true);
    assert.equal(
      (await reader.read(0, 10)).events.map(({ id }) => id),
      ['e1'],
    );
    let release = (): void => {};
    store.held = new Promise((resolve) => {
      release = resolve;
    });
    const older = reader.read(1, 10);
    store.held = undefined;
    await writer.append(event('e2'), true);
    const newer = reader.read(1, 10);
    release();
    await older;
    assert.equal(
      (await newer).events.map(({ id }) => id),
      ['e2'],
    );
  });
