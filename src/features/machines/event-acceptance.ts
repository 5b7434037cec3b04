/** Determines which events an instance accepts now, and explains to the model why one is rejected. */
import { type AnyEventObject, type AnyMachineSnapshot, getNextTransitions } from 'xstate';
import { guardName } from '../../core/kernel/charts/chart.ts';
import { guardWithoutData } from '../../core/kernel/charts/guard.ts';
import { pathsIn } from '../../core/kernel/charts/paths.ts';
import type { BlockedEvent } from './handle-messages.ts';

type Transition = ReturnType<typeof getNextTransitions>[number];

/**
 * Returns the listed events for which the current states have a transition whose guard may accept the event. A guard that
 * rejects every event of this type, whatever its data, excludes the transition.
 */
export function acceptedBy(snapshot: AnyMachineSnapshot, listed: readonly string[]): readonly string[] {
  if (snapshot.status !== 'active') return [];
  const transitions = getNextTransitions(snapshot).filter(leadsOn);
  return listed.filter((type) =>
    transitions.some((transition) => matches(transition, type) && guardFor(transition, snapshot, type) !== 'no'),
  );
}

/**
 * Returns whether the current states can be left without an event of a client: by a timer, an invocation or another event.
 *
 * @param listed the events of clients
 */
export function continuesAlone(snapshot: AnyMachineSnapshot, listed: readonly string[]): boolean {
  if (snapshot.status !== 'active') return false;
  return getNextTransitions(snapshot).some(
    (transition) => leadsOn(transition) && !listed.includes(transition.eventType),
  );
}

/**
 * Explains why the event is rejected; undefined if it is accepted.
 *
 * @throws anything that a guard throws
 */
export function refusalOf(snapshot: AnyMachineSnapshot, event: AnyEventObject): string | undefined {
  if (snapshot.can(event)) return undefined;
  const { type } = event;
  const state = acceptedInWords(snapshot.value);
  const guarded = getNextTransitions(snapshot).filter((transition) => leadsOn(transition) && matches(transition, type));
  const guards = guarded.flatMap(({ guard }) => (guard === undefined ? [] : [guardText(guard)]));
  if (guards.length === 0) return `"${type}" is not accepted in state ${state}.`;
  const rejected = `${[...new Set(guards)].join(' and ')} rejects it`;
  // A guard that reads the event may accept other data: then the event is still among the accepted ones.
  return guarded.some((transition) => guardFor(transition, snapshot, type) === 'unknown')
    ? `"${type}" is not accepted with this data in state ${state}: ${rejected}. Other data may be accepted.`
    : `"${type}" is not accepted now in state ${state}: ${rejected}.`;
}

/** See {@link guardWithoutData}. */
function guardFor({ guard }: Transition, snapshot: AnyMachineSnapshot, type: string): 'yes' | 'no' | 'unknown' {
  return guard === undefined ? 'yes' : guardWithoutData(guard, snapshot, type);
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

/** A guard in a sentence: an inline guard has no name. */
function guardText(guard: unknown): string {
  const name = guardName(guard);
  return name === '' ? 'a guard' : `guard "${name}"`;
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
    const isBlocked = taking.length > 0 && taking.every((transition) => guardFor(transition, snapshot, event) === 'no');
    return isBlocked ? [{ event, guard: guardName(taking[0]?.guard) }] : [];
  });
}

/** Formats a state's value on one line, such as `cart.asking & stock`. */
export function acceptedInWords(value: unknown): string {
  const paths = pathsIn(value);
  return paths.length === 0 ? '(none)' : paths.map((path) => `"${path}"`).join(' and ');
}
