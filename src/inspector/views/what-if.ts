/** What could happen next in a statechart, and what an event would lead to: found out purely, the actor notices nothing. */
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  and,
  getNextTransitions,
  transition,
} from 'xstate';
import { edgeOf, isFor, nodesOf, readChart } from '../../charts/chart.ts';
import type { ChartEdge } from '../../charts/chart-node.ts';
import { pathsIn } from '../../charts/paths.ts';
import type { Charted } from '../../inspection/records.ts';
import { edgesTaken } from '../../inspection/stepping.ts';
import { messageOf } from '../../protocol/json.ts';
import type { Next, Plain, WhatIf } from '../frames.ts';
import { cloneContext } from './clone-context.ts';

type Transition = ReturnType<typeof getNextTransitions>[number];

/** What a guard says, or that it threw. */
type Verdict = { readonly says: boolean } | { readonly threw: string };

/** Most values of a context that are copied: when an event is tried, and whenever somebody looks. */
const MAX_TRIED = 100_000;
const MAX_SEEN = 5_000;

/** The transitions out of the active states. */
export function nextOf({ machine, snapshot: now }: Charted): readonly Next[] {
  if (now.status !== 'active') return [];
  const snapshot = getNextTransitions(now).some(({ guard }) => guard !== undefined) ? aside(now, MAX_SEEN) : now;
  return getNextTransitions(snapshot).map((each) => {
    const edge = edgeOf(each);
    const { guard } = edgesOf(machine).get(edge) ?? {};
    return {
      edge,
      event: each.eventType,
      ...(guard === undefined ? {} : { guard }),
      allowed: each.guard === undefined ? 'yes' : withoutData(each, snapshot),
    };
  });
}

/** The same state, for the code of an author to be tried on. */
function aside(snapshot: AnyMachineSnapshot, most = MAX_TRIED): AnyMachineSnapshot {
  return { ...snapshot, context: cloneContext(snapshot.context, most) };
}

/** What the guard says for an event without data: unknown if it asked for some. */
function withoutData(each: Transition, snapshot: AnyMachineSnapshot): Next['allowed'] {
  let asked = false;
  const event = new Proxy(
    { type: each.eventType },
    {
      get(target, name) {
        if (name === 'type') return target.type;
        asked = true;
        return undefined;
      },
      has(target, name) {
        asked ||= name !== 'type';
        return name in target;
      },
    },
  );
  const verdict = ask(each.guard, snapshot, event);
  if ('threw' in verdict || asked) return 'unknown';
  return verdict.says ? 'yes' : 'no';
}

/** @param show makes what a statechart holds fit to be shown. Never throws: what the author's code throws is told. */
export function whatIf(
  { machine, snapshot }: Charted,
  event: AnyEventObject,
  show: (context: unknown) => Plain,
): WhatIf {
  const now = { edges: [], active: pathsIn(snapshot.value), status: snapshot.status, actions: [] };
  if (snapshot.status !== 'active')
    return { ...now, allowed: false, why: `it is ${snapshot.status}: it takes no event` };
  if (event.type === '' || event.type.includes('*'))
    return { ...now, allowed: false, why: `type: expected an event's type, got "${event.type}"` };
  try {
    if (!machine.getTransitionData(aside(snapshot), event).some(leadsOn))
      return { ...now, allowed: false, why: refusal(machine, aside(snapshot), event) };
    const [next, actions] = transition(machine, aside(snapshot), event);
    return {
      allowed: true,
      edges: edgesTaken(machine, aside(snapshot), event),
      active: pathsIn(next.value),
      status: next.status,
      context: show(next.context),
      actions: actions.map(({ type }) => type.replace(/^xstate\./, '')),
    };
  } catch (error) {
    const [first] = candidates(snapshot, event).flatMap((each) => {
      const verdict = each.guard === undefined ? undefined : ask(each.guard, aside(snapshot), event);
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

/** Why no state takes the event, in words. */
function refusal(machine: AnyStateMachine, snapshot: AnyMachineSnapshot, event: AnyEventObject): string {
  const found = candidates(snapshot, event);
  if (found.length === 0) {
    const types = getNextTransitions(snapshot).map(({ eventType }) => eventType);
    const taken = [...new Set(types)].filter((type) => type !== '' && !type.startsWith('xstate.'));
    return `no state takes it: ${taken.length === 0 ? 'none is taken now' : `expected one of ${taken.join(', ')}`}`;
  }
  const said = found.map((each) => {
    if (each.guard === undefined) return forbids(each);
    const verdict = ask(each.guard, snapshot, event);
    if ('threw' in verdict) return `${nameOf(each, machine)} threw: ${verdict.threw}`;
    return verdict.says ? forbids(each) : `${nameOf(each, machine)} said no`;
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

/** The state that a transition leaves, for people. */
function stateOf({ source }: Transition): string {
  return source.path.length === 0 ? 'every state' : `state "${source.path.join('.')}"`;
}

/** Asks a guard of any form: XState's own way to join guards takes them all, and says how it asks them by its member `check`. */
function ask(guard: unknown, snapshot: AnyMachineSnapshot, event: AnyEventObject): Verdict {
  try {
    const joined: unknown = Reflect.apply(and, undefined, [[guard]]);
    const check: unknown = typeof joined === 'function' ? Reflect.get(joined, 'check') : undefined;
    if (typeof check !== 'function') return { threw: 'this version of XState does not tell how it asks guards' };
    return { says: Boolean(check(snapshot, { context: snapshot.context, event }, joined)) };
  } catch (error) {
    return { threw: messageOf(error) };
  }
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
