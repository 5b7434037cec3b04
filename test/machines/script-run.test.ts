/** The chart of the run of a script, walked: a run that waits cannot return, and a script that has ended begins nothing more. */
import * as assert from 'uvu/assert';
import { initialTransition } from 'xstate';
import { type ScriptRunEvent, scriptRunMachine } from '../../machines/script-run.ts';
import { pathOf } from '../../src/core/kernel/charts/paths.ts';
import { suite } from '../harness/door.ts';
import { checkEdges, walk } from './walk.ts';

const test = suite('the chart of a run of a script');

/** All events: the compiler finds a new one. */
const EVENTS: Readonly<Record<ScriptRunEvent['type'], true>> = {
  ...{ compute: true, call: true, ask: true, hold: true, follow: true, sleep: true },
  ...{ finish: true, return: true, fail: true, stop: true, cancel: true },
};

const { machine } = scriptRunMachine;
const steps = walk(
  machine,
  initialTransition(machine)[0],
  Object.keys(EVENTS).map((type) => ({ type })),
  pathOf,
);

/** The states that accept an event. */
const accept = (type: ScriptRunEvent['type']): readonly string[] =>
  steps
    .filter(({ event, edges }) => event.type === type && edges.length > 0)
    .map(({ before }) => pathOf(before))
    .sort();

const WAITING = ['waiting for approval', 'waiting for client', 'waiting for clock', 'waiting for task'];

test('every edge is walked', () => {
  assert.is(checkEdges(machine, steps), 40);
});

test('only a script that a thread runs, or that has ended before its calls, returns or fails', () => {
  assert.equal(accept('return'), ['computing', 'finishing']);
  assert.equal(accept('fail'), ['computing', 'finishing']);
  assert.equal(accept('finish'), ['computing']);
});

test('a limit and the client end a run in each state, and an end is one', () => {
  const open = ['calling', 'computing', 'finishing', ...WAITING].sort();
  assert.equal(accept('stop'), open);
  assert.equal(accept('cancel'), open);
});

test('a script that has ended computes, calls and waits no more', () => {
  for (const type of ['compute', 'call', 'ask', 'hold', 'follow', 'sleep'] as const)
    assert.not.ok(accept(type).includes('finishing'), type);
});

test('a script that sleeps learns that its time is over before it does anything else', () => {
  const taken = steps.filter(({ before, edges }) => pathOf(before) === 'waiting for clock' && edges.length > 0);
  assert.equal(taken.map(({ event }) => event.type).sort(), ['cancel', 'compute', 'stop']);
});

test('a run that waits has a tag, and continues alone unless it waits for its client', () => {
  for (const { before } of steps) {
    const path = pathOf(before);
    assert.is(before.hasTag('waiting'), WAITING.includes(path), path);
    assert.is(before.hasTag('alone'), WAITING.includes(path) && path !== 'waiting for client', path);
  }
});
