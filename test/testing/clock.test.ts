/** The simulated clock: time passes when told, timers run in order, and nothing else moves. */
import * as assert from 'uvu/assert';
import { SimulatedClock, settled } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('SimulatedClock');

test('stands still until it is advanced, and then shows the time to which it was', async () => {
  const clock = new SimulatedClock(1_000);
  assert.is(clock.now(), 1_000);
  await clock.advance(250.5);
  assert.is(clock.now(), 1_250.5);
  await clock.advance(0);
  assert.is(clock.now(), 1_250.5);
});

test('runs due timers in the order of their times, and of their making where these are equal', async () => {
  const clock = new SimulatedClock();
  const ran: string[] = [];
  const note = (name: string) => () => void ran.push(`${name} at ${clock.now()}`);
  clock.after(30, note('c'));
  clock.after(10, note('a'));
  clock.after(20, note('b1'));
  clock.after(20, note('b2'));
  clock.after(31, note('d'));
  assert.is(clock.timers, 5);
  await clock.advance(30);
  assert.equal(ran, ['a at 10', 'b1 at 20', 'b2 at 20', 'c at 30']);
  assert.is(clock.timers, 1);
});

test('a timer that is started meanwhile runs in the same advance, at its own time', async () => {
  const clock = new SimulatedClock();
  const ran: number[] = [];
  const again = (): void => {
    ran.push(clock.now());
    clock.after(10, again);
  };
  clock.after(10, again);
  clock.after(25, () => void clock.after(0, () => void ran.push(-clock.now())));
  await clock.advance(35);
  assert.equal(ran, [10, 20, -25, 30]);
});

test('code that awaits a timer continues before the next timer fires', async () => {
  const clock = new SimulatedClock();
  const ran: string[] = [];
  const pass = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  const walk = async (): Promise<void> => {
    for (const step of ['one', 'two', 'three']) {
      await pass(10);
      await Promise.resolve();
      ran.push(`${step} at ${clock.now()}`);
    }
  };
  const walking = walk();
  clock.after(15, () => void ran.push('between'));
  await clock.advance(30);
  await walking;
  assert.equal(ran, ['one at 10', 'between', 'two at 20', 'three at 30']);
});

test('a cancelled timer does not run, and cancelling twice or too late does nothing', async () => {
  const clock = new SimulatedClock();
  const ran: string[] = [];
  const early = clock.after(5, () => void ran.push('early'));
  const late = clock.after(10, () => void ran.push('late'));
  early.cancel();
  early.cancel();
  await clock.advance(10);
  late.cancel();
  assert.equal(ran, ['late']);
  assert.is(clock.timers, 0);
});

test('soon waits for no time: in order, when the turn is over', async () => {
  const clock = new SimulatedClock();
  const ran: string[] = [];
  clock.soon(() => {
    ran.push('first');
    clock.soon(() => void ran.push('third'));
  });
  clock.soon(() => void ran.push('second'));
  assert.equal(ran, []);
  await settled();
  assert.equal(ran, ['first', 'second', 'third']);
  assert.is(clock.now(), 0);
});

test('an advance ends in what a timer throws, at the time of that timer', async () => {
  const clock = new SimulatedClock();
  clock.after(10, () => {
    throw new Error('bang');
  });
  const failed = await clock.advance(20).catch((error: Error) => error.message);
  assert.is(failed, 'bang');
  assert.is(clock.now(), 10);
});

test('refuses time that is no number, is endless, or goes back', async () => {
  const clock = new SimulatedClock();
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    const refused = await clock.advance(ms).catch((error: unknown) => error);
    assert.instance(refused, RangeError);
  }
});
