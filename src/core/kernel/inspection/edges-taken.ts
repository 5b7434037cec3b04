/** Finds the transitions that an event takes in a statechart, without running it. */
import { type AnyEventObject, type AnyMachineSnapshot, type AnyStateMachine, createActor } from 'xstate';
import { edgeOf } from '../charts/chart.ts';
import { inertScope, transitionsOf } from '../xstate-internals.ts';

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
export function tracerOf(machine: AnyStateMachine): Tracer {
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
