/** The timers of suspended calls, which the log of requests finds among those of all instances. */
import * as assert from 'uvu/assert';
import { createActorSystem } from '../../../src/core/kernel/actor-system.ts';
import { resolveLimits } from '../../../src/core/kernel/limits.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { Write } from '../../../src/core/store/store.ts';
import { RequestLog } from '../../../src/features/asking/request-log.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the log of requests');

test('finds the timers of suspended calls behind any number of timers of instances', async () => {
  const store = memoryStore();
  const timer = (actor: string, due: number): Write => ({
    type: 'timer',
    timer: { actor, timer: 't', due, data: '' },
  });
  await store.commit(Array.from({ length: 50 }, (_, n) => timer(`handle/room/${n}`, n)));
  await store.commit([timer('question/b', 200), timer('question/a', 100)]);
  const system = createActorSystem({ clock: new SimulatedClock(), log: () => {} });
  const log = new RequestLog({ store, limits: resolveLimits({}), system });
  assert.equal(await log.due(2, undefined), [
    { id: 'a', due: 100 },
    { id: 'b', due: 200 },
  ]);
});
