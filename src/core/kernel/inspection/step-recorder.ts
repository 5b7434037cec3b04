/** Records a step of a chart with the transitions that XState takes for it. */
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { edgesTaken, tracerOf } from './edges-taken.ts';
import type { Inspection } from './inspection.ts';

/** Records the steps of the actor that a chart governs. */
export interface StepRecorder {
  readonly inspection: Inspection;
  /** Its address. */
  readonly actor: string;
}

export function recordStep(
  machine: AnyStateMachine,
  before: AnyMachineSnapshot,
  event: AnyEventObject,
  snapshot: AnyMachineSnapshot,
  { inspection, actor }: StepRecorder,
): void {
  const edges = edgesTaken(machine, before, event, tracerOf(machine));
  inspection.record({ type: 'step', actor, event, edges, snapshot, handled: edges.length > 0 });
}
