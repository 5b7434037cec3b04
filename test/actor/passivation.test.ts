/** Actors that have no mail give back what XState keeps for them, and nobody can tell. */
import * as assert from 'uvu/assert';
import { spawn } from '../../src/actor/actor.ts';
import { createActorSystem } from '../../src/actor/actor-system.ts';
import { Passivator } from '../../src/actor/passivation.ts';
import type { InspectionRecord } from '../../src/inspection/records.ts';
import { settled } from '../../src/testing/simulated-clock.ts';
import { SimulatedClock } from '../../src/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('resting');

interface Count {
  readonly type: 'count';
}

function make() {
  const clock = new SimulatedClock();
  const system = createActorSystem({ clock, log: () => {} });
  const { inspection, resting } = system;
  const seen: number[] = [];
  let rested = 0;
  let count = 0;
  const actor = spawn<Count>({ kind: 'session', address: 'session/test' }, system, () => ({
    receive: () => void seen.push(++count),
    crashed() {},
    state: () => `counted ${count}`,
    rest() {
      rested += 1;
    },
  }));
  return { clock, inspection, resting, seen, mailbox: actor.mailbox, actor, rested: () => rested };
}

test('an actor without mail rests, and the next mail finds what it knew', async () => {
  const { clock, mailbox, seen, rested } = make();
  mailbox.send({ type: 'count' });
  await clock.advance(5_000);
  assert.is(rested(), 0, 'mail has come since');
  await clock.advance(5_000);
  assert.is(rested(), 1);
  mailbox.send({ type: 'count' });
  assert.equal(seen, [1, 2]);
});

test('an actor with mail in every round does not rest', async () => {
  const { clock, mailbox, rested } = make();
  for (let round = 0; round < 20; round += 1) {
    mailbox.send({ type: 'count' });
    await clock.advance(4_000);
  }
  assert.is(rested(), 0);
});

test('no timer runs while every actor rests, nor once the server has stopped', async () => {
  const { clock, mailbox, resting } = make();
  mailbox.send({ type: 'count' });
  assert.is(clock.timers, 1);
  await clock.advance(10_000);
  assert.is(clock.timers, 0);
  mailbox.send({ type: 'count' });
  assert.is(clock.timers, 1);
  resting.end();
  assert.is(clock.timers, 0);
  mailbox.send({ type: 'count' });
  assert.is(clock.timers, 0);
});

test('an actor that stops is let go at once, not at the next round', async () => {
  const { clock, actor, mailbox, rested } = make();
  mailbox.send({ type: 'count' });
  actor.stop('over');
  await clock.advance(20_000);
  assert.is(rested(), 0, 'nobody holds it');
});

test('the inspector records one start and one end of an actor, however often it is inactive', async () => {
  const { clock, inspection, mailbox } = make();
  const heard: InspectionRecord['type'][] = [];
  inspection.listen(({ type }) => void heard.push(type));
  mailbox.send({ type: 'count' });
  await clock.advance(10_000);
  mailbox.send({ type: 'count' });
  assert.equal(heard, ['created', 'state', 'mail', 'state', 'mail', 'state']);
});

test('an inactive actor that was stopped receives nothing more', async () => {
  const { clock, mailbox, seen } = make();
  const actor = make();
  actor.mailbox.send({ type: 'count' });
  await actor.clock.advance(10_000);
  actor.actor.stop('over');
  actor.mailbox.send({ type: 'count' });
  assert.equal(actor.seen, [1]);
  mailbox.send({ type: 'count' });
  await clock.advance(1);
  assert.equal(seen, [1]);
});

test('R-22: more than may be awake rest before their time, those that had no mail for longest first', async () => {
  const clock = new SimulatedClock();
  const resting = new Passivator(clock, 3);
  const rested: number[] = [];
  const mail = new Set<number>();
  const sleepers = Array.from({ length: 6 }, (_, name) => ({
    rest() {
      if (mail.delete(name)) return false;
      rested.push(name);
      return true;
    },
  }));
  for (const [name, sleeper] of sleepers.entries()) {
    if (name === 0) mail.add(name);
    resting.woke(sleeper);
  }
  assert.equal(rested, []);
  await settled();
  assert.equal(rested, [1, 2, 3]);
  resting.end();
});
