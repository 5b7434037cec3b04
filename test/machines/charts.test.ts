/** Every chart, walked: each state is reached, each can end, and an end takes nothing more. */
import { readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type AnyStateMachine, initialTransition, transition } from 'xstate';
import { Chart } from '../../machines/chart/chart.ts';
import { inputRequestMachine } from '../../machines/input-request.ts';
import { interactiveRequestMachine } from '../../machines/interactive-request.ts';
import { pathOf } from '../../src/core/kernel/charts/paths.ts';
import { moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';

const test = suite('charts');

/** Charts with data of their own have tests of their own. */
const WITH_DATA = ['supervisor.ts', 'connection.ts', 'mount.ts'];

const folder = new URL('../../machines/', import.meta.url);
const files = readdirSync(folder).filter((file) => file.endsWith('.ts') && !WITH_DATA.includes(file));

async function machineOf(file: string): Promise<AnyStateMachine> {
  const exported: Record<string, unknown> = await import(moduleUrl(`machines/${file}`));
  const chart = Object.values(exported).find((value) => value instanceof Chart);
  if (!chart) throw new Error(`${file}: expected it to export a chart`);
  return chart.machine;
}

/** The paths of the states without states of their own, such as `active.idle`. */
function leavesOf({ path, states }: AnyStateMachine['root']): string[] {
  const inner = Object.values(states);
  return inner.length === 0 ? [path.join('.')] : inner.flatMap(leavesOf);
}

type Snapshot = ReturnType<typeof initialTransition<AnyStateMachine>>[0];

/** Every state that can be reached, with what each event makes of it. */
function walk(
  machine: AnyStateMachine,
): ReadonlyMap<string, { snapshot: Snapshot; next: ReadonlyMap<string, string> }> {
  const found = new Map<string, { snapshot: Snapshot; next: Map<string, string> }>();
  const open = [initialTransition(machine)[0]];
  for (let snapshot = open.pop(); snapshot; snapshot = open.pop()) {
    const name = pathOf(snapshot);
    if (found.has(name)) continue;
    const next = new Map<string, string>();
    found.set(name, { snapshot, next });
    for (const type of machine.events) {
      const [after] = transition(machine, snapshot, { type });
      if (pathOf(after) === name) continue;
      next.set(type, pathOf(after));
      open.push(after);
    }
  }
  return found;
}

for (const file of files) {
  test(`${file}: every state is reached, each can come to an end, and an end is one`, async () => {
    const machine = await machineOf(file);
    const walked = walk(machine);
    assert.equal([...walked.keys()].sort(), leavesOf(machine.root).sort());
    const ends = (name: string, seen: readonly string[] = []): boolean => {
      const state = walked.get(name);
      if (!state || seen.includes(name)) return false;
      return state.snapshot.status === 'done' || [...state.next.values()].some((next) => ends(next, [...seen, name]));
    };
    for (const [name, { snapshot, next }] of walked) {
      assert.ok(ends(name), `${name} can come to an end`);
      if (snapshot.status === 'done') assert.is(next.size, 0, `${name} takes nothing more`);
    }
    // What it does not know changes nothing.
    for (const { snapshot } of walked.values())
      assert.equal(transition(machine, snapshot, { type: 'nonsense' })[0].value, snapshot.value);
  });
}

type StateNode = AnyStateMachine['root'];

function statesOf(state: StateNode): readonly StateNode[] {
  return [state, ...Object.values(state.states).flatMap(statesOf)];
}

for (const file of files) {
  test(`${file}: its next state depends on its state and the type of the event only, so steps can be cached`, async () => {
    const machine = await machineOf(file);
    const [{ context }] = initialTransition(machine);
    assert.equal(context, {});
    for (const state of statesOf(machine.root)) {
      assert.equal(
        [state.entry, state.exit, state.invoke, state.always ?? [], state.after],
        [[], [], [], [], []],
        state.key,
      );
      for (const transitions of state.transitions.values())
        for (const { guard, actions, target } of transitions)
          assert.equal([guard, actions, target?.length], [undefined, [], 1]);
    }
  });
}

test('an interactive request asks, collects, is suspended and resumes, as often as its handler asks', () => {
  let [snapshot] = initialTransition(interactiveRequestMachine.machine);
  for (const [type, state, tags] of [
    ['ask', 'asking', ['awaiting']],
    ['answered', 'running', []],
    ['collect', 'collecting', ['awaiting']],
    ['suspend', 'suspended', ['awaiting', 'suspended']],
    ['answered', 'running while suspended', ['suspended']],
    ['collect', 'suspended', ['awaiting', 'suspended']],
    ['resume', 'running', []],
    ['detach', 'running as task', []],
    ['collect', 'task awaiting input', ['awaiting']],
    ['expire', 'task awaiting input', ['awaiting']],
    ['succeed', 'succeeded', []],
    ['cancel', 'succeeded', []],
  ] as const) {
    [snapshot] = transition(interactiveRequestMachine.machine, snapshot, { type });
    assert.is(snapshot.value, state);
    assert.equal([...snapshot.tags].sort(), tags);
  }
});

test('an input request ends once, with its first answer', () => {
  for (const [type, state] of [
    ['answer', 'answered'],
    ['decline', 'declined'],
    ['cancel', 'cancelled'],
    ['withdraw', 'withdrawn'],
  ] as const) {
    let [snapshot] = initialTransition(inputRequestMachine.machine);
    [snapshot] = transition(inputRequestMachine.machine, snapshot, { type: 'send' });
    [snapshot] = transition(inputRequestMachine.machine, snapshot, { type });
    [snapshot] = transition(inputRequestMachine.machine, snapshot, { type: 'answer' });
    assert.is(snapshot.value, state);
  }
});
