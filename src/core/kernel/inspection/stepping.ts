/** Steps a statechart purely, and records the transitions that it takes if an inspection listens. */
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventFrom,
  type SnapshotFrom,
  transition,
} from 'xstate';
import { edgeOf } from '../charts/chart.ts';
import { inertScope, transitionsOf } from '../xstate-internals.ts';
import type { Inspection } from './inspection.ts';

/**
 * The state of a statechart of `machines/` after an event. Runs no effects: the caller does what follows.
 *
 * @param machine a chart. Without context, its next state depends on the state and the type of the event only, and is
 *   computed once; `test/machines/charts.test.ts` checks these charts for guards and actions
 * @param actor the address of the actor that the chart governs
 */
export function step<M extends AnyStateMachine>(
  inspection: Inspection,
  actor: string,
  machine: M,
  snapshot: SnapshotFrom<M> & AnyMachineSnapshot,
  event: EventFrom<M> & AnyEventObject,
): SnapshotFrom<M> {
  const next = nextOf(machine, snapshot, event);
  if (!inspection.on) return next;
  const edges = edgesTaken(machine, snapshot, event, tracerOf(machine));
  inspection.record({ type: 'step', actor, event, edges, snapshot: next, handled: edges.length > 0 });
  return next;
}

/** By state and type of event. */
const nextStates = new WeakMap<AnyStateMachine, Map<string, Map<string, AnyMachineSnapshot>>>();

/** Computes each step once: XState creates an actor for each transition, which takes 5 µs. */
function nextOf<M extends AnyStateMachine>(
  machine: M,
  snapshot: SnapshotFrom<M> & AnyMachineSnapshot,
  event: EventFrom<M> & AnyEventObject,
): SnapshotFrom<M> {
  const { value, context }: AnyMachineSnapshot = snapshot;
  const { type }: AnyEventObject = event;
  if (typeof value !== 'string' || Object.keys(context).length > 0) return transition(machine, snapshot, event)[0];
  const states = nextStates.get(machine) ?? new Map<string, Map<string, AnyMachineSnapshot>>();
  nextStates.set(machine, states);
  const steps = states.get(value) ?? new Map<string, AnyMachineSnapshot>();
  states.set(value, steps);
  const next = steps.get(type) ?? transition(machine, snapshot, event)[0];
  steps.set(type, next);
  // The map holds snapshots of this machine only.
  return next as SnapshotFrom<M>;
}

type Scope = Parameters<AnyStateMachine['transition']>[2];

interface Tracer {
  readonly scope: Scope;
  edges: string[];
}

const tracers = new WeakMap<AnyStateMachine, Tracer>();

/**
 * The transitions that an event would take, in order, by the ids of the chart. Runs no action.
 *
 * @param tracer default: a new one for each call, because a statechart may spawn an actor with a system-wide name, and
 *   that name stays taken
 */
export function edgesTaken(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
  tracer: Tracer = traceOf(machine),
): readonly string[] {
  tracer.edges = [];
  machine.transition(snapshot, event, tracer.scope);
  return tracer.edges;
}

/** The shared tracer of a statechart of `machines/`, which spawns nothing. */
function tracerOf(machine: AnyStateMachine): Tracer {
  const known = tracers.get(machine) ?? traceOf(machine);
  tracers.set(machine, known);
  return known;
}

/** XState reports microsteps only to the system of an actor. This actor is never started and runs nothing. */
function traceOf(machine: AnyStateMachine): Tracer {
  const self = createActor(machine);
  const tracer: Tracer = {
    edges: [],
    scope: inertScope(self),
  };
  self.system.inspect((inspected) => {
    if (inspected.type === '@xstate.microstep') tracer.edges.push(...transitionsOf(inspected).map(edgeOf));
  });
  return tracer;
}
