/** Restarts: how often and how soon a part that crashed starts again. */
import * as assert from 'uvu/assert';
import { Restarts } from '../../../src/core/kernel/restarts.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';

const test = suite('restarts');

const POLICY = { restarts: 3, windowMs: 60_000, backOff: { fromMs: 100, toMs: 250 } };

/** A part that crashes, and the times at which it was started again. */
function part(policy = POLICY) {
  const clock = new SimulatedClock();
  const restarts = new Restarts(policy);
  const started: number[] = [];
  const crash = (): number | undefined => restarts.restart(clock, () => void started.push(clock.now()));
  return { clock, restarts, started, crash };
}

test('a part starts again after growing delays, no longer than the longest, and not after more crashes than its policy tolerates', async () => {
  const { clock, restarts, started, crash } = part();
  const delays: unknown[] = [];
  for (let time = 0; time < 4; time += 1) {
    delays.push(crash());
    await clock.advance(1_000);
  }
  assert.equal(delays, [100, 200, 250, undefined]);
  assert.is(started.length, 3);
  assert.is(restarts.quarantined, true);
  assert.is(restarts.crashes, 4);
  assert.is(crash(), undefined, 'a part in quarantine stays there');
});

test('crashes that are further apart than the window do not count', async () => {
  const { clock, started, crash } = part();
  for (let time = 0; time < 20; time += 1) {
    assert.is(crash(), time % 2 === 0 ? 100 : 200);
    await clock.advance(time % 2 === 0 ? 1_000 : 60_000);
  }
  assert.is(started.length, 20);
});

test('a part without a delay continues at once, as often as its policy tolerates', () => {
  const restarts = new Restarts({ restarts: 1, windowMs: 1_000 });
  assert.is(restarts.crashed(0), true);
  assert.is(restarts.crashed(2_000), true, 'the first crash is too long ago');
  assert.is(restarts.crashed(2_001), false);
  assert.is(restarts.crashed(9_000), false);
  assert.is(new Restarts({ restarts: 0, windowMs: 1_000 }).crashed(0), false);
});

test('a release forgets the crashes and the restart that waits', async () => {
  const { clock, restarts, started, crash } = part();
  for (let time = 0; time < 4; time += 1) crash();
  restarts.release();
  assert.is(restarts.quarantined, false);
  assert.is(clock.timers, 0);
  assert.is(crash(), 100);
  restarts.release();
  await clock.advance(1_000);
  assert.equal(started, []);
});

test('nothing starts a part after its restarts were stopped', async () => {
  const { clock, restarts, started, crash } = part();
  crash();
  restarts.stop();
  await clock.advance(1_000);
  assert.equal(started, []);
});
