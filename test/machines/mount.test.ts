/** The chart of a mount, walked: every edge, both outcomes of each guard, every delay, and closing from everywhere. */
import * as assert from 'uvu/assert';
import { initialTransition, transition } from 'xstate';
import { type MountEvent, type MountInput, mountMachine } from '../../machines/mount.ts';
import { pathOf } from '../../src/core/kernel/charts/paths.ts';
import { suite } from '../harness/door.ts';
import { checkEdges, walk } from './walk.ts';

const test = suite('the chart of a mount');

const INPUT: MountInput = {
  backOff: { fromMs: 1_000, toMs: 3_000 },
  gatherMs: 50,
  pace: { listings: 2, everyMs: 1_000 },
  staleMs: 10_000,
};
const FAILED = { type: 'failed', at: 0, jitter: 1 } as const;
const TOO_OLD = { type: 'failed', at: 20_000, jitter: 0 } as const;
const EVENTS: readonly MountEvent[] = [
  { type: 'start', expects: false },
  { type: 'start', expects: true },
  { type: 'client' },
  { type: 'stored', at: 0 },
  { type: 'nothing stored' },
  { type: 'listed', at: 10_000, freshMs: 500 },
  { type: 'moved', at: 10_000, freshMs: 500 },
  FAILED,
  TOO_OLD,
  { type: 'changed' },
  { type: 'due' },
  { type: 'refresh' },
  { type: 'close' },
];

const begin = initialTransition(mountMachine, INPUT)[0];
type Snapshot = typeof begin;
const after = (snapshot: Snapshot, ...events: readonly MountEvent[]): Snapshot =>
  events.reduce((before, event) => transition(mountMachine, before, event)[0], snapshot);
const steps = walk(mountMachine, begin, EVENTS, (snapshot) =>
  [
    pathOf(snapshot),
    snapshot.context.listedAt,
    Math.min(snapshot.context.failures, 2),
    snapshot.context.allowed.listings >= 1,
    snapshot.context.expects,
  ].join(' '),
);

test('every edge of the chart is walked, with each guard true and false', () => {
  assert.ok(checkEdges(mountMachine, steps) >= 25);
});

test('every state is listing, waits for a time or the client, or begins or ends the mount; each can become current or closed', () => {
  const next = new Map<string, Set<string>>();
  for (const { before, after } of steps) {
    const path = pathOf(before);
    next.set(path, (next.get(path) ?? new Set()).add(pathOf(after)));
    if (!['idle', 'restoring', 'closed'].includes(path))
      assert.is((['listing', 'timed', 'expecting'] as const).filter((tag) => before.hasTag(tag)).length, 1, path);
    assert.is(before.hasTag('offering'), path.startsWith('offering'), path);
  }
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    from === to || [...(next.get(from) ?? [])].some((each) => !seen.has(each) && reaches(each, to, seen.add(each)));
  for (const path of next.keys()) {
    assert.is(reaches(path, 'offering.current'), path !== 'closed', path);
    assert.ok(reaches(path, 'closed'), path);
  }
});

test('a change during a listing leads to another listing, and changes of one moment lead to one', () => {
  const current = after(
    begin,
    { type: 'start', expects: false },
    { type: 'nothing stored' },
    { type: 'listed', at: 0, freshMs: 500 },
  );
  assert.equal([pathOf(current), current.context.delayMs], ['offering.current', 500]);
  const gathering = after(current, { type: 'changed' }, { type: 'changed' });
  assert.equal([pathOf(gathering), gathering.context.delayMs], ['offering.gathering', 50]);
  const overtaken = after(gathering, { type: 'due' }, { type: 'changed' });
  assert.is(pathOf(overtaken), 'offering.overtaken');
  assert.is(pathOf(after(overtaken, { type: 'listed', at: 0, freshMs: 500 })), 'offering.gathering');
});

test('changes that follow each listing are gathered until the pace allows another one, also if the listings fail', () => {
  const next = (snapshot: Snapshot, at: number): Snapshot =>
    after(snapshot, { type: 'listed', at, freshMs: 500 }, { type: 'changed' });
  let snapshot = next(after(begin, { type: 'start', expects: false }, { type: 'nothing stored' }), 20_000);
  const delays: number[] = [];
  for (const at of [20_010, 20_020, 21_020, 22_020, 60_000]) {
    delays.push(snapshot.context.delayMs);
    snapshot = next(after(snapshot, { type: 'due' }), at);
  }
  assert.equal([...delays, snapshot.context.delayMs], [50, 990, 1_000, 1_000, 1_000, 50]);
  const failing = after(snapshot, { type: 'refresh' }, { type: 'failed', at: 60_001, jitter: 1 });
  assert.is(pathOf(failing), 'offering.stale');
  assert.is(pathOf(after(failing, { type: 'changed' })), 'offering.stale', 'the delay of the failure remains');
  assert.is(pathOf(after(failing, { type: 'refresh' })), 'offering.renewing', 'a caller is not kept waiting');
});

test('a stored catalogue is offered until it is older than staleMs; delays double up to their limit', () => {
  let snapshot = after(begin, { type: 'start', expects: false }, { type: 'stored', at: 5_000 });
  assert.is(pathOf(snapshot), 'offering.renewing');
  for (const delayMs of [1_000, 2_000, 3_000, 3_000]) {
    snapshot = after(snapshot, { type: 'failed', at: 14_999, jitter: 1 });
    assert.equal([pathOf(snapshot), snapshot.context.delayMs], ['offering.stale', delayMs]);
    snapshot = after(snapshot, { type: 'due' });
  }
  snapshot = after(snapshot, { type: 'failed', at: 15_000, jitter: 0 });
  assert.equal([pathOf(snapshot), snapshot.context.delayMs], ['unknown.waiting', 1_500]);
});
