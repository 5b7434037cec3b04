/** The one way to step a statechart of `machines/`: without effects, recorded if an inspection listens. */
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventFrom,
  type InputFrom,
  initialTransition,
  type SnapshotFrom,
  transition,
} from 'xstate';
import { pathOf } from './charts/paths.ts';
import { edgesTaken, tracerOf } from './inspection/edges-taken.ts';
import type { Inspection } from './inspection/inspection.ts';

/** Records the steps of the actor that a chart governs. */
export interface StepRecorder {
  readonly inspection: Inspection;
  /** Its address. */
  readonly actor: string;
}

/** The states of each chart without context, by path, so that each state exists once. */
const states = new WeakMap<AnyStateMachine, Map<string, AnyMachineSnapshot>>();
/** The steps from such a state, by type of event. Undefined: the state does not accept the event. */
const steps = new WeakMap<AnyMachineSnapshot, Map<string, AnyMachineSnapshot | undefined>>();

/** The steps of a chart without context that were computed. A look-up here, instead of a {@link step}, saves each request the call. */
export interface ComputedSteps<M extends AnyStateMachine> {
  get(state: SnapshotFrom<M>): ReadonlyMap<string, SnapshotFrom<M> | undefined> | undefined;
}

export function computedSteps<M extends AnyStateMachine>(_: M): ComputedSteps<M> {
  // The map of a state holds states of the same machine only.
  return steps as ComputedSteps<M>;
}

/** The initial state of a chart. @param input what its context begins with */
export function initial<M extends AnyStateMachine>(machine: M, input?: InputFrom<M>): SnapshotFrom<M> {
  return unique(machine, initialTransition<AnyStateMachine>(machine, input)[0]);
}

/**
 * The state after an event. Runs no effects: the caller does what follows.
 *
 * @param machine a chart of `machines/`. Without context, its next state depends on the state and the type of the event
 *   only: each step is computed once, and from then on costs two look-ups (docs/adr/0001-requests-step-no-chart.md).
 *   `test/machines/charts.test.ts` checks these charts for guards and actions
 * @returns undefined if the state does not accept the event
 */
export function step<M extends AnyStateMachine>(
  machine: M,
  state: SnapshotFrom<M>,
  event: EventFrom<M> & AnyEventObject,
  recorder?: StepRecorder,
): SnapshotFrom<M> | undefined {
  const known = steps.get(state);
  const { type }: AnyEventObject = event;
  // The map of a state holds states of the same machine only.
  const next = known?.has(type) ? (known.get(type) as SnapshotFrom<M> | undefined) : compute(machine, state, event);
  if (recorder?.inspection.on) record(machine, state, event, next ?? state, recorder);
  return next;
}

function compute<M extends AnyStateMachine>(machine: M, state: AnyMachineSnapshot, event: AnyEventObject) {
  const accepts = state.status === 'active' && state.can(event);
  const next = accepts ? unique(machine, transition<AnyStateMachine>(machine, state, event)[0]) : undefined;
  steps.get(unique(machine, state))?.set(event.type, next);
  return next;
}

/** The one object for a state of a chart without context; every other state as it is. */
function unique<M extends AnyStateMachine>(machine: M, state: AnyMachineSnapshot): SnapshotFrom<M> {
  if (Object.keys(state.context).length > 0) return state as SnapshotFrom<M>;
  const all = states.get(machine) ?? new Map<string, AnyMachineSnapshot>();
  states.set(machine, all);
  const path = pathOf(state);
  const known = all.get(path) ?? state;
  all.set(path, known);
  if (!steps.has(known)) steps.set(known, new Map());
  return known as SnapshotFrom<M>;
}

function record(
  machine: AnyStateMachine,
  before: AnyMachineSnapshot,
  event: AnyEventObject,
  snapshot: AnyMachineSnapshot,
  { inspection, actor }: StepRecorder,
): void {
  const edges = edgesTaken(machine, before, event, tracerOf(machine));
  inspection.record({ type: 'step', actor, event, edges, snapshot, handled: edges.length > 0 });
}
