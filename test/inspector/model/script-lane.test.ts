/** The run of a script in the model: at each record its calls, its line and its logs, also for a viewer that came later. */
import * as assert from 'uvu/assert';
import type { Journaled } from '../../../src/inspector/frames.ts';
import { LIVE, scriptLane, scriptRuns, stopsOf } from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { type FrameFeed, shop } from './frames.ts';

const test = suite('model: scripts');

type Given = Omit<Journaled, 'type' | 'actor' | 'index'>;

const SCRIPT = { code: 'const a = await shop.list();\nawait shop.pay(a);', tool: 'run_code', engine: 'quick 1' };
const JOURNAL: readonly Given[] = [
  { what: 'begun', date: 1_000, data: SCRIPT },
  { what: 'called', date: 1_005, call: 1, name: 'shop.list', line: 1, data: [{}] },
  { what: 'delivered', date: 1_025, call: 1, name: 'shop.list', data: { value: [7] } },
  { what: 'logged', date: 1_026, data: { lines: ['one'], whole: false } },
  { what: 'called', date: 1_026, call: 2, name: 'shop.pay', line: 2, data: [7] },
  { what: 'started', date: 1_026, call: 2, name: 'shop.pay' },
  { what: 'held', date: 1_030, call: 2, name: 'shop.pay', data: { approval: 'ap1', text: 'Pay?' } },
  { what: 'delivered', date: 1_100, call: 2, name: 'shop.pay', data: { error: { message: 'denied' } } },
  { what: 'ended', date: 1_101, data: { how: 'failed', isError: true, text: 'Error: denied' } },
];

/** Tells the entries of a run. @returns their records */
function told(feed: FrameFeed, entries: readonly Given[] = JOURNAL, from = 1): readonly number[] {
  feed.record({ type: 'created', actor: 'run/1', kind: 'run', label: 'run_code of ada' });
  return entries.map((entry, at) => feed.record({ type: 'journal', actor: 'run/1', index: from + at, ...entry }));
}

function laneAt(feed: FrameFeed, seq: number) {
  const [run] = scriptRuns(feed.model, seq);
  if (!run) throw new Error('expected a run');
  return scriptLane(run, seq);
}

test('a script stands at each record where it stood then', () => {
  const feed = shop();
  const seqs = told(feed);
  const at = (index: number) => laneAt(feed, seqs[index] ?? 0);
  assert.equal([at(0).code, at(0).engine, at(0).calls, at(0).line], [SCRIPT.code, 'quick 1', [], undefined]);
  assert.equal([at(1).line, at(1).calls[0]?.outcome, at(1).logs], [1, undefined, []]);
  const [list] = at(2).calls;
  assert.equal([list?.outcome, list?.data, list?.took, list?.args], ['returned', [7], 20, [{}]]);
  assert.equal([at(3).logs, at(4).line, at(4).call], [['one'], 2, 2]);
  assert.equal(at(6).calls[1]?.wait, { approval: 'ap1', text: 'Pay?' });
  const pay = at(7).calls[1];
  assert.equal([pay?.outcome, pay?.data, pay?.took], ['threw', { message: 'denied' }, 74]);
  assert.equal([at(7).how, at(8).how, at(8).missing], [undefined, 'failed', 0]);
  assert.equal([at(7).result, at(8).result, at(8).isError], [undefined, 'Error: denied', true]);
});

test('a reader steps from the beginning over each result to the end', () => {
  const feed = shop();
  const seqs = told(feed);
  const line = feed.model.actor('run/1');
  assert.equal(
    line && stopsOf(line),
    [0, 2, 7, 8].map((index) => seqs[index]),
  );
});

test('an entry that comes again is one entry, and those that no process kept are counted', () => {
  const feed = shop();
  told(feed);
  told(feed);
  assert.is(laneAt(feed, LIVE).entries.length, JOURNAL.length);
  const later = shop();
  told(later, JOURNAL.slice(4), 5);
  const lane = laneAt(later, LIVE);
  assert.equal([lane.code, lane.missing, lane.calls.length], [undefined, 4, 1]);
});

test('a script that runs again makes calls whose ends are known, and writes its whole log again', () => {
  const feed = shop();
  const again: readonly Given[] = [
    { what: 'begun', date: 1_000, data: SCRIPT },
    { what: 'delivered', date: 1_025, call: 1, name: 'shop.list', data: { value: [7] } },
    { what: 'logged', date: 9_000, data: { lines: ['one'], whole: true } },
    { what: 'called', call: 1, name: 'shop.list', line: 1, data: [{}] },
    { what: 'logged', date: 9_001, data: { lines: ['one', 'two'], whole: true } },
  ];
  told(feed, again);
  const lane = laneAt(feed, LIVE);
  const [list] = lane.calls;
  assert.equal([list?.outcome, list?.took, list?.line, list?.args], ['returned', undefined, 1, [{}]]);
  assert.equal(lane.logs, ['one', 'two']);
});

test('a result without a value has none', () => {
  const feed = shop();
  told(feed, [{ what: 'delivered', date: 5, call: 1, name: 'sleep' }], 2);
  const [call] = laneAt(feed, LIVE).calls;
  assert.equal([call?.outcome, call?.data, call?.name], ['returned', undefined, 'sleep']);
});
