/** Determines which events an instance accepts now, and explains to the model why one is rejected. */
import { type AnyEventObject, type AnyMachineSnapshot, getNextTransitions } from 'xstate';
import { guardName as nameOfGuard } from '../../core/kernel/charts/chart.ts';
import { guardWithoutData } from '../../core/kernel/charts/guard.ts';
import { pathsIn } from '../../core/kernel/charts/paths.ts';
import type { BlockedEvent } from './handle-messages.ts';

type Transition = ReturnType<typeof getNextTransitions>[number];

/** Returns the listed events for which the current states have a transition, regardless of its guards. */
export function acceptedBy(snapshot: AnyMachineSnapshot, listed: readonly string[]): readonly string[] {
  if (snapshot.status !== 'active') return [];
  const transitions = getNextTransitions(snapshot);
  return listed.filter((type) => transitions.some((transition) => leadsOn(transition) && matches(transition, type)));
}

/** Returns whether the current states can be left without an event of a client: by a timer, an invocation or another event. */
export function continuesAlone(snapshot: AnyMachineSnapshot): boolean {
  return snapshot.status === 'active' && getNextTransitions(snapshot).some(leadsOn);
}

/** The reason of a rejection, and the events that are accepted instead. */
export interface Refusal {
  readonly why: string;
  readonly accepts: readonly string[];
}

/**
 * Explains why the event is rejected; undefined if it is accepted.
 *
 * @throws anything that a guard throws
 */
export function refusalOf(
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
  listed: readonly string[],
): Refusal | undefined {
  if (snapshot.can(event)) return undefined;
  const { type } = event;
  const state = acceptedInWords(snapshot.value);
  const accepted = acceptedBy(snapshot, listed);
  if (!accepted.includes(type))
    return { why: `"${type}" is not accepted in state ${state}. ${inWords(accepted)}`, accepts: accepted };
  const guarded = getNextTransitions(snapshot).filter((transition) => matches(transition, type));
  const guards = guarded.flatMap(({ guard }) => (guard === undefined ? [] : [guardName(guard)]));
  const rejected = `${[...new Set(guards)].join(' and ')} rejected it`;
  // A guard that reads the event may accept other data: then the event is still among the accepted ones.
  if (guarded.some(({ guard }) => guard !== undefined && guardWithoutData(guard, snapshot, type) === 'unknown'))
    return {
      why: `"${type}" is not accepted with this data in state ${state}: ${rejected}. ${inWords(accepted, type)}`,
      accepts: accepted,
    };
  const others = accepted.filter((other) => other !== type);
  return { why: `"${type}" is not accepted now in state ${state}: ${rejected}. ${inWords(others)}`, accepts: others };
}

/** @param again the rejected event, if other data may be accepted */
function inWords(accepted: readonly string[], again?: string): string {
  if (accepted.length === 0) return 'No other event is accepted now.';
  return `Accepted now: ${accepted.map((type) => (type === again ? `${type} with other data` : type)).join(', ')}.`;
}

/** A transition without target and actions only forbids its event. */
function leadsOn({ target, actions }: Transition): boolean {
  return target !== undefined || actions.length > 0;
}

/** Returns whether a transition matches events of this type, by name or by XState's wildcards. */
function matches({ eventType }: Transition, type: string): boolean {
  if (eventType === type || eventType === '*') return true;
  return eventType.endsWith('.*') && `${type}.`.startsWith(eventType.slice(0, -1));
}

/** Returns the name of a guard as its author wrote it: its key in `guards` or the name of the function. */
function guardName(guard: unknown): string {
  if (typeof guard === 'string') return `guard "${guard}"`;
  if (typeof guard === 'function') return guard.name === '' ? 'a guard without a name' : `guard "${guard.name}"`;
  if (typeof guard === 'object' && guard !== null && 'type' in guard && typeof guard.type === 'string')
    return `guard "${guard.type}"`;
  return 'a guard';
}

/**
 * Returns the listed events for which the current states have a transition, and whose guards reject each of them without
 * reading its data. A view shows them as buttons that are off.
 */
export function blockedBy(snapshot: AnyMachineSnapshot, listed: readonly string[]): readonly BlockedEvent[] {
  if (snapshot.status !== 'active') return [];
  const transitions = getNextTransitions(snapshot).filter(leadsOn);
  return listed.flatMap((event) => {
    const taking = transitions.filter((transition) => matches(transition, event));
    const guards = taking.flatMap(({ guard }) => (guard === undefined ? [] : [guard]));
    const rejects = (guard: unknown): boolean => guardWithoutData(guard, snapshot, event) === 'no';
    if (guards.length === 0 || guards.length < taking.length || !guards.every(rejects)) return [];
    return [{ event, guard: nameOfGuard(guards[0]) }];
  });
}

/** Formats a state's value on one line, such as `cart.asking & stock`. */
export function acceptedInWords(value: unknown): string {
  const paths = pathsIn(value);
  return paths.length === 0 ? '(none)' : paths.map((path) => `"${path}"`).join(' and ');
}
