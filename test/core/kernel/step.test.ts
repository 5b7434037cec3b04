/** A step of a chart: what XState computes, once for each state and event. */
import { readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type AnyMachineSnapshot, initialTransition, transition } from 'xstate';
import { Chart, type ChartState } from '../../../machines/chart/chart.ts';
import { connectionMachine } from '../../../machines/connection.ts';
import { emitterMachine } from '../../../machines/emitter.ts';
import { handleMachine } from '../../../machines/handle.ts';
import { nodesOf, readChart } from '../../../src/core/kernel/charts/chart.ts';
import { pathOf } from '../../../src/core/kernel/charts/paths.ts';
import { Inspection } from '../../../src/core/kernel/inspection/inspection.ts';
import type { InspectionRecord } from '../../../src/core/kernel/inspection/records.ts';
import { step } from '../../../src/core/kernel/step.ts';
import { initial, stepMachine } from '../../../src/core/kernel/step-machine.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { moduleUrl } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';

const test = suite('step');

const folder = new URL('../../../machines/', import.meta.url);

type AnyChart = Chart<{ readonly type: string }, string>;

/** The charts without context of `machines/`. */
async function charts(): Promise<readonly AnyChart[]> {
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts'));
  const modules: readonly object[] = await Promise.all(files.map((file) => import(moduleUrl(`machines/${file}`))));
  return modules
    .flatMap((module) => Object.values(module))
    .filter((value): value is AnyChart => value instanceof Chart);
}

const tagsOf = ({ machine }: AnyChart): readonly string[] =>
  nodesOf(readChart(machine)).flatMap(({ tags = [] }) => tags);

test('a step is the transition of XState in every state and for every event, and each state is one object', async () => {
  const all = await charts();
  assert.ok(all.length >= 9, `${all.length} charts`);
  for (const chart of all) {
    const { machine } = chart;
    const tags = tagsOf(chart);
    const seen = new Map<string, ChartState<{ readonly type: string }, string>>();
    const open: [ChartState<{ readonly type: string }, string>, AnyMachineSnapshot][] = [
      [chart.initial, initialTransition(machine)[0]],
    ];
    for (let pair = open.pop(); pair; pair = open.pop()) {
      const [state, snapshot] = pair;
      assert.is(seen.get(state.path) ?? state, state);
      assert.is(state.path, pathOf(snapshot));
      assert.is(state.status, snapshot.status);
      for (const tag of tags)
        assert.is(state.hasTag(tag), snapshot.hasTag(tag), `${chart.id}: ${tag} in ${state.path}`);
      assert.equal(state.charted().snapshot.toJSON(), snapshot.toJSON());
      assert.is(chart.at(state.path), state);
      if (seen.has(state.path)) continue;
      seen.set(state.path, state);
      for (const type of [...machine.events, 'nonsense']) {
        const next = step(state, { type });
        const what = `${chart.id}: ${type} in ${state.path}`;
        assert.is(next !== undefined, snapshot.status === 'active' && snapshot.can({ type }), what);
        assert.is(step(state, { type }), next, what);
        if (next) open.push([next, transition(machine, snapshot, { type })[0]]);
      }
    }
    assert.ok(seen.size > 2, chart.id);
  }
});

test('an event that leads to the same state is accepted, and one that the state does not know is not', () => {
  const waking = step(handleMachine.initial, { type: 'wake' });
  assert.ok(waking);
  assert.is(step(waking, { type: 'restart' }), waking);
  assert.is(step(waking, { type: 'durable' }), undefined);
});

test('a target is a sibling, a state inside, or an id with a path, as XState reads them', () => {
  const chart = new Chart<{ type: 'sibling' | 'inner' | 'id' | 'out' }>({
    id: 'targets',
    initial: 'a',
    on: { out: '.b' },
    states: {
      a: {
        initial: 'one',
        on: { sibling: 'b', inner: '.two', id: '#deep.y' },
        states: { one: {}, two: { on: { sibling: 'one' } } },
      },
      b: { id: 'deep', initial: 'x', states: { x: {}, y: { type: 'final' } } },
    },
  });
  const begin = chart.initial;
  for (const type of ['sibling', 'inner', 'id', 'out'] as const) {
    const [snapshot] = transition(chart.machine, begin.charted().snapshot, { type });
    assert.is(begin.step(type)?.path, pathOf(snapshot), type);
    assert.is(begin.step(type)?.status, snapshot.status, type);
  }
  assert.is(begin.step('inner')?.step('sibling'), begin);
});

test('a path that the chart does not have is an error that names the states that exist', () => {
  assert.throws(() => handleMachine.at('live.asleep'), /expected one of hibernating, .* in live, got asleep/);
});

test('the steps of a chart with context depend on its context', () => {
  const options = { attempts: 1, backOff: { fromMs: 500, toMs: 30_000 }, suspendMs: 60_000, stableMs: 60_000 };
  const events = [{ type: 'need' }, { type: 'opened', era: 'legacy' }, { type: 'negotiated', at: 0 }] as const;
  const ready = events.reduce(
    (state, event) => stepMachine(connectionMachine, state, event) ?? state,
    initial(connectionMachine, options),
  );
  const lost = (at: number) => stepMachine(connectionMachine, ready, { type: 'gone', at, jitter: 0 })?.value;
  assert.is(lost(1), 'suspended');
  assert.is(lost(60_000), 'backingOff');
});

test('an inspection records each step with its transitions, and an event that no state handles', () => {
  const inspection = new Inspection(new SimulatedClock());
  const records: InspectionRecord[] = [];
  inspection.listen((record) => records.push(record));
  const recorder = { inspection, actor: 'emitter/1' };
  const slow = step(emitterMachine.initial, { type: 'slow' }, recorder);
  assert.ok(slow);
  assert.is(step(slow, { type: 'slow' }, recorder), undefined);
  assert.equal(
    records.map((record) => record.type === 'step' && [record.actor, record.snapshot.value, record.handled]),
    [
      ['emitter/1', slow.path, true],
      ['emitter/1', slow.path, false],
    ],
  );
});
