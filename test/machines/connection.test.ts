/** The chart of a client's connection, walked: every edge, both outcomes of each guard, every delay, and draining from everywhere. */
import * as assert from 'uvu/assert';
import { initialTransition, transition } from 'xstate';
import { type ConnectionEvent, type ConnectionInput, connectionMachine } from '../../machines/connection.ts';
import { pathOf } from '../../src/core/kernel/charts/paths.ts';
import { suite } from '../harness/door.ts';
import { checkEdges, walk } from './walk.ts';

const test = suite('the chart of a connection');

const INPUT: ConnectionInput = {
  attempts: 3,
  backOff: { fromMs: 500, toMs: 1_500 },
  suspendMs: 60_000,
  stableMs: 60_000,
};

type Snapshot = ReturnType<typeof initialTransition<typeof connectionMachine>>[0];

/** Every event, with each value that a guard distinguishes. `at` is a time after the last negotiation, which is at 0. */
const EVENTS: readonly ConnectionEvent[] = [
  { type: 'need' },
  { type: 'opened' },
  { type: 'opened', era: 'legacy' },
  { type: 'opened', era: 'modern' },
  { type: 'legacy' },
  { type: 'silent' },
  { type: 'answered late' },
  { type: 'rejected' },
  { type: 'other revision' },
  { type: 'probe killed' },
  { type: 'other transport' },
  { type: 'negotiated', at: 0 },
  { type: 'unauthorized' },
  { type: 'authorized' },
  { type: 'authorized', era: 'legacy' },
  { type: 'refused', status: 401 },
  { type: 'refused', status: 403 },
  { type: 'failed', jitter: 0, final: false },
  { type: 'failed', jitter: 1, final: true },
  { type: 'session lost' },
  { type: 'gone', at: INPUT.stableMs - 1, jitter: 0 },
  { type: 'gone', at: INPUT.stableMs, jitter: 1 },
  { type: 'due' },
  { type: 'drain' },
  { type: 'settled' },
  { type: 'late' },
];

const begin = (input = INPUT): Snapshot => initialTransition(connectionMachine, input)[0];

function after(snapshot: Snapshot, ...events: readonly ConnectionEvent[]): Snapshot {
  return events.reduce((before, event) => transition(connectionMachine, before, event)[0], snapshot);
}

/** What can differ in the future: the state, and the parts of the context that a guard reads, as far as it reads them. */
function keyOf(snapshot: Snapshot): string {
  const { failures, signIns, delayMs } = snapshot.context;
  return [pathOf(snapshot), Math.min(failures, INPUT.attempts), signIns, delayMs].join(' ');
}

const steps = walk(connectionMachine, begin(), EVENTS, keyOf);

test('every edge of the chart is walked, with each guard true and false', () => {
  assert.ok(checkEdges(connectionMachine, steps) > 40);
});

test('every state is reached, and each of them can become ready again, or is closing', () => {
  const states = new Map<string, Set<string>>();
  for (const step of steps) {
    const next = states.get(pathOf(step.before)) ?? new Set();
    states.set(pathOf(step.before), next.add(pathOf(step.after)));
  }
  assert.equal([...states.keys()].sort(), [
    'admitting',
    'authorizing',
    'backingOff',
    'closed',
    'connecting',
    'draining',
    'idle',
    'negotiating.guessing',
    'negotiating.initializing',
    'negotiating.probing',
    'negotiating.reprobing',
    'ready',
    'reauthorizing',
    'reopening',
    'suspended',
    'unauthorized',
  ]);
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    from === to || [...(states.get(from) ?? [])].some((next) => !seen.has(next) && reaches(next, to, seen.add(next)));
  for (const state of states.keys()) {
    assert.is(reaches(state, 'ready'), state !== 'draining' && state !== 'closed', state);
    assert.ok(reaches(state, 'closed'), state);
  }
});

test('draining begins in every state, ends with the last call or with its time, and takes nothing else', () => {
  for (const { before, event, after: next } of steps) {
    const from = pathOf(before);
    if (event.type === 'drain') assert.is(pathOf(next), from === 'closed' ? 'closed' : 'draining', from);
    if (from === 'draining')
      assert.is(pathOf(next), event.type === 'settled' || event.type === 'late' ? 'closed' : 'draining', event.type);
    if (from === 'closed') assert.is(pathOf(next), 'closed', event.type);
  }
});

test('calls wait exactly where a connection is under way, and every such state ends by itself or by its channel', () => {
  const tagged = (tag: 'waiting' | 'serving' | 'timed'): readonly string[] =>
    [...new Set(steps.filter(({ before }) => before.hasTag(tag)).map(({ before }) => pathOf(before)))].sort();
  assert.equal(tagged('serving'), ['ready']);
  assert.equal(tagged('timed'), ['backingOff', 'suspended']);
  assert.equal(tagged('waiting'), [
    'admitting',
    'authorizing',
    'backingOff',
    'connecting',
    'negotiating.guessing',
    'negotiating.initializing',
    'negotiating.probing',
    'negotiating.reprobing',
    'reauthorizing',
    'reopening',
  ]);
  // A broken channel is noticed wherever one is open.
  for (const { before, event, edges } of steps) {
    const open = /^(negotiating|authorizing|reauthorizing|unauthorized|ready)/.test(pathOf(before));
    if (event.type === 'gone') assert.is(edges.length > 0, open, pathOf(before));
  }
});

test('delays double up to their limit, half of each is random, and the last attempt suspends', () => {
  const failing = (jitter: number): ConnectionEvent => ({ type: 'failed', jitter, final: false });
  const input = { ...INPUT, attempts: 6 };
  for (const [jitter, delays] of [
    [0, [250, 500, 750, 750, 750]],
    [1, [500, 1_000, 1_500, 1_500, 1_500]],
  ] as const) {
    let snapshot = after(begin(input), { type: 'need' });
    for (const [index, delayMs] of delays.entries()) {
      snapshot = after(snapshot, failing(jitter));
      assert.is(snapshot.value, 'backingOff');
      assert.is(snapshot.context.delayMs, delayMs);
      assert.is(snapshot.context.failures, index + 1);
      snapshot = after(snapshot, { type: 'due' });
      assert.is(snapshot.value, 'connecting');
    }
    snapshot = after(snapshot, failing(jitter));
    assert.is(snapshot.value, 'suspended');
    assert.is(snapshot.context.delayMs, input.suspendMs);
    // A trial that fails suspends again, and one that succeeds serves.
    assert.is(after(snapshot, { type: 'due' }, failing(0)).value, 'suspended');
    assert.is(after(snapshot, { type: 'need' }, { type: 'opened' }, { type: 'negotiated', at: 0 }).value, 'ready');
  }
});

test('failures count until the connection has served for stableMs', () => {
  const connected = (at: number): readonly ConnectionEvent[] => [{ type: 'opened' }, { type: 'negotiated', at }];
  const broken = (at: number): ConnectionEvent => ({ type: 'gone', at, jitter: 1 });
  let snapshot = after(begin(), { type: 'need' }, ...connected(0), broken(59_999));
  assert.equal([snapshot.value, snapshot.context.failures, snapshot.context.delayMs], ['backingOff', 1, 500]);
  snapshot = after(snapshot, { type: 'due' }, ...connected(60_000), broken(60_001));
  assert.equal([snapshot.value, snapshot.context.failures, snapshot.context.delayMs], ['backingOff', 2, 1_000]);
  assert.is(after(snapshot, { type: 'due' }, ...connected(61_000), broken(61_001)).value, 'suspended');
  snapshot = after(snapshot, { type: 'due' }, ...connected(61_000), broken(121_000));
  assert.equal([snapshot.value, snapshot.context.failures, snapshot.context.delayMs], ['backingOff', 1, 500]);
});

test('a server that wants a token after three sign-ins rejects it, and the next caller signs in again', () => {
  let snapshot = after(begin(), { type: 'need' }, { type: 'opened' });
  for (let signIn = 1; signIn <= 3; signIn += 1) {
    snapshot = after(snapshot, { type: 'unauthorized' });
    assert.is(snapshot.value, 'authorizing');
    snapshot = after(snapshot, { type: 'authorized' });
    assert.equal(snapshot.value, { negotiating: 'probing' });
  }
  snapshot = after(snapshot, { type: 'unauthorized' });
  assert.is(snapshot.value, 'unauthorized');
  snapshot = after(snapshot, { type: 'need' }, { type: 'authorized' }, { type: 'negotiated', at: 0 });
  assert.equal([snapshot.value, snapshot.context.signIns], ['ready', 0]);
});
