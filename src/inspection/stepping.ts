/** Steps a statechart purely, and tells an inspection, if there is one, which transitions were taken. */
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
import type { Inspection } from './inspection.ts';

/**
 * What a statechart of `machines/` comes to by an event. Nothing is done: whoever steps it does what follows.
 *
 * @param actor the address of the actor that it governs
 */
export function step<M extends AnyStateMachine>(
  inspection: Inspection,
  actor: string,
  machine: M,
  snapshot: SnapshotFrom<M>,
  event: EventFrom<M>,
): SnapshotFrom<M> {
  if (!inspection.on) return transition(machine, snapshot, event)[0];
  const [next] = transition(machine, snapshot, event);
  const edges = edgesTaken(machine, snapshot, event, tracerOf(machine));
  inspection.record({ type: 'step', actor, event, edges, snapshot: next, handled: edges.length > 0 });
  return next;
}

type Scope = Parameters<AnyStateMachine['transition']>[2];

interface Tracer {
  readonly scope: Scope;
  edges: string[];
}

const tracers = new WeakMap<AnyStateMachine, Tracer>();

/**
 * The transitions that an event would lead to, in order, as its chart names them. Nothing is done.
 *
 * @param tracer default: another for each time, for what a statechart spawns by a name for the whole system stays there
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

/** The one of a statechart of `machines/`, which spawns nothing. */
function tracerOf(machine: AnyStateMachine): Tracer {
  const known = tracers.get(machine) ?? traceOf(machine);
  tracers.set(machine, known);
  return known;
}

/** XState tells of its microsteps to the system of an actor only: this one is never started, and does nothing. */
function traceOf(machine: AnyStateMachine): Tracer {
  const self = createActor(machine);
  const tracer: Tracer = {
    edges: [],
    scope: {
      self,
      id: self.id,
      sessionId: self.sessionId,
      system: self.system,
      logger: nothing,
      defer: nothing,
      stopChild: nothing,
      emit: nothing,
      actionExecutor: nothing,
    },
  };
  self.system.inspect((inspected) => {
    if (inspected.type === '@xstate.microstep') tracer.edges.push(...inspected._transitions.map(edgeOf));
  });
  return tracer;
}

function nothing(): void {}
