/**
 * The possible transitions of a statechart and the consequences of an event, computed as pure functions without an
 * effect on the actor.
 */
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  getNextTransitions,
  transition,
} from 'xstate';
import { edgeOf, isFor, nodesOf, readChart } from '../../core/kernel/charts/chart.ts';
import type { ChartEdge } from '../../core/kernel/charts/chart-node.ts';
import { guardResult, guardWithoutData } from '../../core/kernel/charts/guard.ts';
import { pathsIn } from '../../core/kernel/charts/paths.ts';
import { edgesTaken } from '../../core/kernel/inspection/edges-taken.ts';
import type { Charted } from '../../core/kernel/inspection/records.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { Next, Plain, WhatIf } from '../frames.ts';
import { cloneContext } from './clone-context.ts';

type Transition = ReturnType<typeof getNextTransitions>[number];

/** Maximum numbers of copied values of a context: for a what-if, and for each view. */
const MAX_TRIED = 100_000;
const MAX_VIEWED = 5_000;

/** The transitions out of the active states. */
export function nextOf({ machine, snapshot: now }: Charted): readonly Next[] {
  if (now.status !== 'active') return [];
  const snapshot = getNextTransitions(now).some(({ guard }) => guard !== undefined) ? onCopy(now, MAX_VIEWED) : now;
  return getNextTransitions(snapshot).map((each) => {
    const edge = edgeOf(each);
    const { guard } = edgesOf(machine).get(edge) ?? {};
    return {
      edge,
      event: each.eventType,
      ...(guard === undefined ? {} : { guard }),
      allowed: each.guard === undefined ? 'yes' : guardWithoutData(each.guard, snapshot, each.eventType),
    };
  });
}

/** A snapshot with a copied context, on which an author's code can run. */
function onCopy(snapshot: AnyMachineSnapshot, most = MAX_TRIED): AnyMachineSnapshot {
  return { ...snapshot, context: cloneContext(snapshot.context, most) };
}

/** @param show makes a context plain. Never throws: the result contains errors that the author's code threw. */
export function whatIf(
  { machine, snapshot }: Charted,
  event: AnyEventObject,
  show: (context: unknown) => Plain,
): WhatIf {
  const now = { edges: [], active: pathsIn(snapshot.value), status: snapshot.status, actions: [] };
  if (snapshot.status !== 'active')
    return { ...now, allowed: false, why: `the actor is ${snapshot.status} and accepts no events` };
  if (event.type === '' || event.type.includes('*'))
    return { ...now, allowed: false, why: `type: expected an event's type, got "${event.type}"` };
  try {
    if (!machine.getTransitionData(onCopy(snapshot), event).some(leadsOn))
      return { ...now, allowed: false, why: refusal(machine, onCopy(snapshot), event) };
    const [next, actions] = transition(machine, onCopy(snapshot), event);
    return {
      allowed: true,
      edges: edgesTaken(machine, onCopy(snapshot), event),
      active: pathsIn(next.value),
      status: next.status,
      context: show(next.context),
      actions: actions.map(({ type }) => type.replace(/^xstate\./, '')),
    };
  } catch (error) {
    const [first] = candidates(snapshot, event).flatMap((each) => {
      const verdict = each.guard === undefined ? undefined : guardResult(each.guard, onCopy(snapshot), event);
      return verdict && 'threw' in verdict ? [`${nameOf(each, machine)} threw: ${verdict.threw}`] : [];
    });
    return { ...now, allowed: false, why: first ?? `its code threw: ${messageOf(error)}` };
  }
}

/** A transition without target or actions only forbids an event. */
function leadsOn({ target, actions }: Transition): boolean {
  return target !== undefined || actions.length > 0;
}

function candidates(snapshot: AnyMachineSnapshot, { type }: AnyEventObject): readonly Transition[] {
  return getNextTransitions(snapshot).filter((each) => isFor({ on: each.eventType }, type));
}

/** The reason why no state handles the event. */
function refusal(machine: AnyStateMachine, snapshot: AnyMachineSnapshot, event: AnyEventObject): string {
  const found = candidates(snapshot, event);
  if (found.length === 0) {
    const types = getNextTransitions(snapshot).map(({ eventType }) => eventType);
    const taken = [...new Set(types)].filter((type) => type !== '' && !type.startsWith('xstate.'));
    return `no state handles it: ${taken.length === 0 ? 'no event is handled now' : `expected one of ${taken.join(', ')}`}`;
  }
  const said = found.map((each) => {
    if (each.guard === undefined) return forbids(each);
    const verdict = guardResult(each.guard, snapshot, event);
    if ('threw' in verdict) return `${nameOf(each, machine)} threw: ${verdict.threw}`;
    return verdict.allows ? forbids(each) : `${nameOf(each, machine)} returned false`;
  });
  return [...new Set(said)].join('; ');
}

function nameOf(each: Transition, machine: AnyStateMachine): string {
  const { guard, label } = edgesOf(machine).get(edgeOf(each)) ?? { guard: undefined, label: each.eventType };
  return `the guard ${guard ? `"${guard}" ` : ''}of "${label}" in ${stateOf(each)}`;
}

function forbids(each: Transition): string {
  return `${stateOf(each)} forbids it`;
}

/** The state that a transition leaves, for display. */
function stateOf({ source }: Transition): string {
  return source.path.length === 0 ? 'every state' : `state "${source.path.join('.')}"`;
}

const known = new WeakMap<AnyStateMachine, ReadonlyMap<string, ChartEdge>>();

function edgesOf(machine: AnyStateMachine): ReadonlyMap<string, ChartEdge> {
  const before = known.get(machine);
  if (before) return before;
  const edges = new Map(
    nodesOf(readChart(machine)).flatMap((node) => node.edges.map((edge) => [edge.id, edge] as const)),
  );
  known.set(machine, edges);
  return edges;
}
