/** The watch over the parent process, with a clock and a parent that the test moves. */
import * as assert from 'uvu/assert';
import { type Parent, realParent, watchParent } from '../../../src/core/transports/parent-watch.ts';
import { suite } from '../../harness/door.ts';
import { HandClock } from './support.ts';

const test = suite('parent watch');

function watched(parent: Parent) {
  const clock = new HandClock();
  const said: string[] = [];
  const stop = watchParent({
    clock,
    everyMs: 100,
    parent,
    onGone: () => void said.push('gone'),
    onUnable: (why) => void said.push(`unable: ${why}`),
  });
  return { clock, said, stop };
}

test('says once that the parent is gone when the process has another parent', () => {
  let id = 7;
  const { clock, said } = watched({ id: () => id, runs: () => true });
  clock.pass(1_000);
  assert.equal(said, []);
  id = 1;
  clock.pass(99);
  assert.equal(said, []);
  clock.pass(1);
  assert.equal(said, ['gone']);
  assert.is(clock.timers, 0);
});

test('says that the parent is gone when no process has its id, though the id stays', () => {
  let runs = true;
  const { clock, said } = watched({ id: () => 7, runs: () => runs });
  clock.pass(100);
  runs = false;
  clock.pass(100);
  assert.equal(said, ['gone']);
});

test('says once that it cannot know, and stops looking', () => {
  const outside = watched({ id: () => 0, runs: () => true });
  assert.equal(outside.said, ['unable: the parent process is outside this container']);
  const failing = watched({
    id: () => 7,
    runs: () => {
      throw new Error('kill is not supported here');
    },
  });
  failing.clock.pass(1_000);
  assert.equal(failing.said, ['unable: kill is not supported here']);
  assert.is(outside.clock.timers + failing.clock.timers, 0);
});

test('stops on demand', () => {
  let id = 7;
  const { clock, said, stop } = watched({ id: () => id, runs: () => true });
  stop();
  id = 1;
  clock.pass(1_000);
  assert.equal(said, []);
});

test('tells a process that runs from one that does not', () => {
  assert.is(realParent.id(), process.ppid);
  assert.ok(realParent.runs(process.pid));
  assert.not(realParent.runs(2 ** 30));
});
