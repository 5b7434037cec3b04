/** The queue of timers of hibernating instances. */
import * as assert from 'uvu/assert';
import { TimerQueue } from '../../../src/core/kernel/timer-queue.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the queue of timers');

function queue() {
  const clock = new SimulatedClock();
  const woken: string[] = [];
  return {
    clock,
    woken,
    timers: new TimerQueue(
      clock,
      () => clock.date(),
      (id) => void woken.push(id),
    ),
  };
}

test('wakes what is due in the order of the dates, whatever the order of adding, replacing and deleting', () => {
  const { clock, woken, timers } = queue();
  const dates = new Map<string, number>();
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let step = 0; step < 3_000; step += 1) {
    const id = `i${random(400)}`;
    if (random(3) === 0) {
      timers.delete(id);
      dates.delete(id);
      continue;
    }
    const due = clock.date() + 1 + random(600_000);
    timers.add(id, due);
    dates.set(id, due);
  }
  assert.is(timers.size, dates.size);
  for (const [id, due] of dates) assert.is(timers.dueOf(id), due);
  clock.pass(600_000);
  assert.is(timers.size, 0);
  assert.equal(
    woken.map((id) => dates.get(id)),
    [...dates.values()].sort((a, b) => a - b),
  );
  assert.is(clock.timers, 0);
});

test('runs one timer of the system for all of them, and none without any', () => {
  const { clock, timers } = queue();
  for (let n = 0; n < 1_000; n += 1) timers.add(`i${n}`, clock.date() + 86_400_000 + n);
  timers.add('first', clock.date() + 10);
  assert.is(clock.timers, 1);
  for (const id of timers.ids()) timers.delete(id);
  assert.is(clock.timers, 0);
});

test('wakes thousands that are due at once over several turns, each at its date', () => {
  const { clock, woken, timers } = queue();
  for (let n = 0; n < 2_000; n += 1) timers.add(`i${n}`, clock.date() + 5);
  clock.pass(4);
  assert.is(woken.length, 0);
  clock.pass(1);
  assert.is(woken.length, 2_000);
});

test('wakes by the date, also if dates pass faster than time', () => {
  const clock = new SimulatedClock();
  let ahead = 0;
  const woken: string[] = [];
  const timers = new TimerQueue(
    clock,
    () => clock.date() + ahead,
    (id) => void woken.push(id),
  );
  timers.add('a', clock.date() + 3_600_000);
  ahead = 3_600_000;
  clock.pass(30_000);
  assert.equal(woken, ['a']);
});
