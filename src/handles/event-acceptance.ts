/** Determines which events an instance accepts now, and explains to the model why one is rejected. */
import { type AnyEventObject, type AnyMachineSnapshot, getNextTransitions } from 'xstate';
import { pathsIn } from '../charts/paths.ts';

type Transition = ReturnType<typeof getNextTransitions>[number];

/** Returns the listed events for which the current states have a transition, regardless of its guards. */
export function acceptedBy(snapshot: AnyMachineSnapshot, listed: readonly string[]): readonly string[] {
  if (snapshot.status !== 'active') return [];
  const transitions = getNextTransitions(snapshot);
  return listed.filter((type) => transitions.some((transition) => leadsOn(transition) && matches(transition, type)));
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
): string | undefined {
  if (snapshot.can(event)) return undefined;
  const state = acceptedInWords(snapshot.value);
  const accepted = acceptedBy(snapshot, listed);
  const others = accepted.filter((type) => type !== event.type);
  const now = others.length === 0 ? 'No other event is accepted now.' : `Accepted now: ${others.join(', ')}.`;
  if (!accepted.includes(event.type)) return `"${event.type}" is not accepted in state ${state}. ${now}`;
  const guards = getNextTransitions(snapshot)
    .filter((transition) => matches(transition, event.type))
    .flatMap(({ guard }) => (guard === undefined ? [] : [guardName(guard)]));
  return `"${event.type}" is not accepted now in state ${state}: ${[...new Set(guards)].join(' and ')} rejected it. ${now}`;
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

/** Formats a state's value on one line, such as `cart.asking & stock`. */
export function acceptedInWords(value: unknown): string {
  const paths = pathsIn(value);
  return paths.length === 0 ? '(none)' : paths.map((path) => `"${path}"`).join(' and ');
}
