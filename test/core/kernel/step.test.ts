/** A step of a chart: what XState computes, once for each state and event. */
import { readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type AnyMachineSnapshot, type AnyStateMachine, StateMachine, transition } from 'xstate';
import { emitterMachine } from '../../../machines/emitter.ts';
import { handleMachine } from '../../../machines/handle.ts';
import { supervisorMachine } from '../../../machines/supervisor.ts';
import { pathOf } from '../../../src/core/kernel/charts/paths.ts';
import { Inspection } from '../../../src/core/kernel/inspection/inspection.ts';
import type { InspectionRecord } from '../../../src/core/kernel/inspection/records.ts';
import { initial, step } from '../../../src/core/kernel/step.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { moduleUrl } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';

const test = suite('step');

const folder = new URL('../../../machines/', import.meta.url);

/** The charts without context of `machines/`. */
async function charts(): Promise<readonly AnyStateMachine[]> {
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts'));
  const modules: readonly object[] = await Promise.all(files.map((file) => import(moduleUrl(`machines/${file}`))));
  return modules
    .flatMap((module) => Object.values(module))
    .filter((value): value is AnyStateMachine => value instanceof StateMachine && !value.config.context);
}

test('a step is the transition of XState in every state and for every event, and each state is one object', async () => {
  const machines = await charts();
  assert.ok(machines.length >= 9, `${machines.length} charts`);
  for (const machine of machines) {
    const seen = new Map<string, AnyMachineSnapshot>();
    const open: AnyMachineSnapshot[] = [initial(machine)];
    for (let state = open.pop(); state; state = open.pop()) {
      assert.is(seen.get(pathOf(state)) ?? state, state);
      if (seen.has(pathOf(state))) continue;
      seen.set(pathOf(state), state);
      for (const type of machine.events) {
        const next: AnyMachineSnapshot | undefined = step(machine, state, { type });
        const what = `${machine.id}: ${type} in ${pathOf(state)}`;
        assert.is(next !== undefined, state.status === 'active' && state.can({ type }), what);
        assert.is(step(machine, state, { type }), next, what);
        if (!next) continue;
        assert.is(pathOf(next), pathOf(transition(machine, state, { type })[0]), what);
        open.push(next);
      }
    }
    assert.ok(seen.size > 2, machine.id);
  }
});

test('an event that leads to the same state is accepted, and one that the state does not know is not', () => {
  const waking = step(handleMachine, initial(handleMachine), { type: 'wake' });
  assert.ok(waking);
  assert.is(step(handleMachine, waking, { type: 'restart' }), waking);
  assert.is(step(handleMachine, waking, { type: 'durable' }), undefined);
});

test('a state that was resolved from stored data takes the same steps', () => {
  const resolved = handleMachine.resolveState({ value: { live: 'waking' } });
  const waking = step(handleMachine, initial(handleMachine), { type: 'wake' });
  assert.ok(waking);
  assert.is(step(handleMachine, resolved, { type: 'activated' }), step(handleMachine, waking, { type: 'activated' }));
});

test('the steps of a chart with context depend on its context', () => {
  const policy = { restarts: 1, windowMs: 1_000 };
  const once = step(supervisorMachine, initial(supervisorMachine, policy), { type: 'crash', at: 0 });
  assert.is(once?.value, 'tolerating');
  assert.is(once && step(supervisorMachine, once, { type: 'crash', at: 2_000 })?.value, 'tolerating');
  assert.is(once && step(supervisorMachine, once, { type: 'crash', at: 1 })?.value, 'quarantined');
});

test('an inspection records each step with its transitions, and an event that no state handles', () => {
  const inspection = new Inspection(new SimulatedClock());
  const records: InspectionRecord[] = [];
  inspection.listen((record) => records.push(record));
  const recorder = { inspection, actor: 'emitter/1' };
  const slow = step(emitterMachine, initial(emitterMachine), { type: 'slow' }, recorder);
  assert.ok(slow);
  assert.is(step(emitterMachine, slow, { type: 'slow' }, recorder), undefined);
  assert.equal(
    records.map((record) => record.type === 'step' && [record.actor, record.snapshot.value, record.handled]),
    [
      ['emitter/1', slow.value, true],
      ['emitter/1', slow.value, false],
    ],
  );
});
