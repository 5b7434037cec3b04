/** Deaths of the process while it delivers: at each write, events arrive in order and none is lost. */
import * as assert from 'uvu/assert';
import { memoryStore } from '../../../../src/core/store/memory-store.ts';
import { StoreError, type Write } from '../../../../src/core/store/store.ts';
import { SimulatedClock, settled } from '../../../../src/testing/testing.ts';
import { conclusive, suite } from '../../../harness/door.ts';
import { TestStore } from '../../../harness/test-store.ts';
import { until } from '../../../harness/wait.ts';
import { type DeliveryStage, deliveryStage, idsOf, receiver, SEP, subscription } from './support.ts';

const test = suite('deaths of webhooks');

/** A store that fails from its nth write on, as for a process that is killed there. */
class DyingStore extends TestStore {
  writes = 0;
  dies = Number.POSITIVE_INFINITY;

  override write(writes: readonly Write[]): Promise<void> {
    this.writes += 1;
    if (this.writes >= this.dies) return Promise.reject(new StoreError('fenced', 'this process has died'));
    return super.write(writes);
  }
}

test('R-84: events arrive in order and none is lost, whichever write the process dies at', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock(1_000_000);
  const hook = await receiver();
  const live = async (): Promise<{ store: DyingStore; stage: DeliveryStage }> => {
    const store = new DyingStore(inner);
    const stage = deliveryStage([hook.origin], { store }, {}, clock);
    await stage.as('ada');
    return { store, stage };
  };
  const { stage: first } = await live();
  await (await first.as('ada')).modern('events/subscribe', subscription(hook.url), SEP);
  await first.close();
  let emitted = 0;
  // The writes of a life: each event, and the position a second later.
  for (let death = 1; death <= 6; death += 1) {
    const { store, stage } = await live();
    store.dies = store.writes + death;
    for (let n = 0; n < 3; n += 1) {
      // What is not durable was not emitted, and the next process emits it.
      const isDurable = await stage.emit(emitted + 1).then(
        () => true,
        () => false,
      );
      if (!isDurable) break;
      emitted += 1;
      await settled();
      await clock.advance(1_000);
    }
    await stage.close();
  }
  const { stage: last } = await live();
  emitted += 1;
  await last.emit(emitted);
  const expected = Array.from({ length: emitted }, (_, index) => `e${index + 1}`);
  await until(
    async () => {
      await settled();
      return idsOf(hook).includes(`e${emitted}`);
    },
    () => `e${emitted}, got ${idsOf(hook).join(' ')}`,
  );
  conclusive(() => assert.equal([...new Set(idsOf(hook))], expected));
  assert.ok(emitted > 6, `${emitted} events`);
  assert.ok(hook.posts.length <= 2 * emitted, `${hook.posts.length} deliveries of ${emitted} events`);
  await last.close();
  await hook.close();
});

test('R-84: a new subscription whose endpoint has never answered gets every event after its process has died', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock(1_000_000);
  const hook = await receiver(({ body }) => (body.type === 'verification' ? 200 : 500));
  // The topic has no event when the subscription begins.
  const first = deliveryStage([hook.origin], { store: new TestStore(inner) }, {}, new SimulatedClock(1_000_000));
  await (await first.as('ada')).modern('events/subscribe', subscription(hook.url), SEP);
  for (let n = 1; n <= 5; n += 1) await first.emit(n);
  await until(async () => {
    await settled();
    return hook.answered >= 1;
  }, 'an attempt that fails');
  // Its time stands still from now on: it attempts nothing more, and stores nothing. The endpoint is mended.
  const last = deliveryStage([hook.origin], { store: new TestStore(inner) }, {}, clock);
  hook.answer = () => 204;
  await last.as('ada');
  const ids = (): readonly string[] => [...new Set(idsOf(hook))];
  await until(
    async () => {
      await clock.advance(1_000);
      return ids().length === 5;
    },
    () => `5 events, got ${idsOf(hook).join()}`,
  );
  assert.equal(ids(), ['e1', 'e2', 'e3', 'e4', 'e5']);
  await last.close();
  await hook.close();
});
