/** Walks a statechart: every event in every situation that can be reached. */
import * as assert from 'uvu/assert';
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventFrom,
  type SnapshotFrom,
  transition,
} from 'xstate';
import { nodesOf, readChart } from '../../src/core/kernel/charts/chart.ts';
import { pathOf } from '../../src/core/kernel/charts/paths.ts';
import { edgesTaken, tracerOf } from '../../src/core/kernel/inspection/edges-taken.ts';

export interface WalkedStep<M extends AnyStateMachine> {
  readonly before: SnapshotFrom<M> & AnyMachineSnapshot;
  readonly event: EventFrom<M> & AnyEventObject;
  readonly after: SnapshotFrom<M> & AnyMachineSnapshot;
  readonly edges: readonly string[];
}

/**
 * Takes every step from every situation that can be reached.
 *
 * @param events every event, with each value that a guard distinguishes
 * @param keyOf what can differ in the future: the state, and the parts of the context that a guard reads
 */
export function walk<M extends AnyStateMachine>(
  machine: M,
  begin: SnapshotFrom<M> & AnyMachineSnapshot,
  events: readonly (EventFrom<M> & AnyEventObject)[],
  keyOf: (snapshot: SnapshotFrom<M> & AnyMachineSnapshot) => string,
): readonly WalkedStep<M>[] {
  const steps: WalkedStep<M>[] = [];
  const seen = new Set<string>();
  const open = [begin];
  for (let before = open.pop(); before; before = open.pop()) {
    const key = keyOf(before);
    if (seen.has(key)) continue;
    seen.add(key);
    for (const event of events) {
      // The charts of the runtime spawn nothing, so one tracer serves all steps.
      const edges = edgesTaken(machine, before, event, tracerOf(machine));
      const [after] = transition(machine, before, event);
      steps.push({ before, event, after, edges });
      if (edges.length > 0) open.push(after);
    }
  }
  return steps;
}

/** Checks that the steps take every edge of the chart, with each guard true and false. @returns the number of edges */
export function checkEdges<M extends AnyStateMachine>(machine: M, steps: readonly WalkedStep<M>[]): number {
  const edges = nodesOf(readChart(machine)).flatMap((node) => node.edges);
  const walked = new Set(steps.flatMap((step) => step.edges));
  assert.equal([...walked].sort(), edges.map(({ id }) => id).sort());
  // A guarded edge is followed by one without a guard for the same event, in the same state or its parent, or by none.
  for (const { id, guard, on } of edges) {
    if (guard === undefined) continue;
    const state = id.slice(0, id.indexOf('#'));
    const offered = steps.filter(({ before, event }) => typeOf(event) === on && within(pathOf(before), state));
    assert.ok(
      offered.some((step) => step.edges.includes(id)),
      `${id} ${guard} is true`,
    );
    assert.ok(
      offered.some((step) => !step.edges.includes(id)),
      `${id} ${guard} is false`,
    );
  }
  return edges.length;
}

function typeOf({ type }: AnyEventObject): string {
  return type;
}

function within(path: string, state: string): boolean {
  return path === state || path.startsWith(`${state}.`);
}
