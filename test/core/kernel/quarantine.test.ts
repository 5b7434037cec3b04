/** Actors that crash again and again: quarantined alone, shown to the operator, released by one. */
import * as assert from 'uvu/assert';
import { spawn } from '../../../src/core/kernel/actor.ts';
import { createActorSystem } from '../../../src/core/kernel/actor-system.ts';
import type { InspectionRecord } from '../../../src/core/kernel/inspection/records.ts';
import type { RestartPolicy } from '../../../src/core/kernel/restarts.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('quarantine');

type Work = { readonly type: 'work' } | { readonly type: 'fail' } | { readonly type: 'stop' };

function host() {
  return createActorSystem({ clock: new SimulatedClock(), log: () => {} });
}

function worker(at: ReturnType<typeof host>, address: string, policy?: RestartPolicy) {
  const done: string[] = [];
  let stop = (): void => {};
  const actor = spawn<Work>({ kind: 'executor', address }, at, () => ({
    ...(policy ? { policy } : {}),
    state: () => `did ${done.length}`,
    receive({ type }) {
      if (type === 'fail') throw new Error('as asked');
      done.push(type);
      if (type === 'stop') stop();
    },
    crashed: () => {},
  }));
  stop = () => actor.stop('it has done enough');
  return { actor, done };
}

test('R-16: an actor that fails at every start is quarantined after three in five seconds; its neighbours notice nothing', () => {
  const at = host();
  const bad = worker(at, 'bad');
  const good = worker(at, 'good');
  for (let i = 0; i < 10; i += 1) {
    bad.actor.mailbox.send({ type: 'fail' });
    good.actor.mailbox.send({ type: 'work' });
  }
  assert.is(good.done.length, 10);
  assert.equal(
    at.quarantine.all().map(({ address, why }) => [address, why]),
    [['bad', 'as asked']],
  );
});

test('an operator releases what is quarantined, and its crashes are forgotten', () => {
  const at = host();
  const { actor, done } = worker(at, 'bad');
  for (let i = 0; i < 4; i += 1) actor.mailbox.send({ type: 'fail' });
  actor.mailbox.send({ type: 'work' });
  assert.equal(done, []);
  assert.is(at.quarantine.release('nobody'), false);
  assert.is(at.quarantine.release('bad'), true);
  actor.mailbox.send({ type: 'work' });
  assert.equal(done, ['work']);
  for (let i = 0; i < 3; i += 1) actor.mailbox.send({ type: 'fail' });
  assert.equal(at.quarantine.all(), []);
});

test('an actor that has stopped leaves the quarantine', () => {
  const at = host();
  const { actor } = worker(at, 'bad');
  for (let i = 0; i < 4; i += 1) actor.mailbox.send({ type: 'fail' });
  actor.stop('enough');
  assert.equal(at.quarantine.all(), []);
  assert.is(at.quarantine.release('bad'), false);
});

test('an actor that stops itself tells no state after it is gone', () => {
  const at = host();
  const records: InspectionRecord[] = [];
  at.inspection.listen((record) => records.push(record));
  const { actor } = worker(at, 'brief');
  actor.mailbox.send({ type: 'stop' });
  assert.is(records.at(-1)?.type, 'gone');
});
