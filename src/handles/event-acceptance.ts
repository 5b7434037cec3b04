/** Which events an instance takes now, and why it does not take one: in words for the model that sent it. */
import { type AnyEventObject, type AnyMachineSnapshot, getNextTransitions } from 'xstate';
import { pathsIn } from '../charts/paths.ts';
import { messageOf } from '../protocol/json.ts';

type Transition = ReturnType<typeof getNextTransitions>[number];

/** The listed events for which the current states have a transition, whatever its guards may say to their data. */
export function acceptedBy(snapshot: AnyMachineSnapshot, listed: readonly string[]): readonly string[] {
  if (snapshot.status !== 'active') return [];
  const transitions = getNextTransitions(snapshot);
  return listed.filter((type) => transitions.some((transition) => leadsOn(transition) && matches(transition, type)));
}

/**
 * Why the event is not taken; undefined where it is.
 *
 * @throws what a guard throws
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
  const now = others.length === 0 ? 'No other event is taken now.' : `Taken now: ${others.join(', ')}.`;
  if (!accepted.includes(event.type)) return `"${event.type}" is not taken in state ${state}. ${now}`;
  const guards = getNextTransitions(snapshot)
    .filter((transition) => matches(transition, event.type))
    .flatMap(({ guard }) => (guard === undefined ? [] : [guardName(guard)]));
  return `"${event.type}" is not taken now in state ${state}: ${[...new Set(guards)].join(' and ')} said no. ${now}`;
}

/** A transition without target or actions only forbids an event. */
function leadsOn({ target, actions }: Transition): boolean {
  return target !== undefined || actions.length > 0;
}

/** Whether a transition is for events of this type: by its name, or by XState's wildcards. */
function matches({ eventType }: Transition, type: string): boolean {
  if (eventType === type || eventType === '*') return true;
  return eventType.endsWith('.*') && `${type}.`.startsWith(eventType.slice(0, -1));
}

/** As its author wrote it: the name in `guards`, or of the function. */
function guardName(guard: unknown): string {
  if (typeof guard === 'string') return `guard "${guard}"`;
  if (typeof guard === 'function') return guard.name === '' ? 'a guard without a name' : `guard "${guard.name}"`;
  if (typeof guard === 'object' && guard !== null && 'type' in guard && typeof guard.type === 'string')
    return `guard "${guard.type}"`;
  return 'a guard';
}

/** A state's value in one line, such as `cart.asking & stock`. */
export function acceptedInWords(value: unknown): string {
  const paths = pathsIn(value);
  return paths.length === 0 ? '(none)' : paths.map((path) => `"${path}"`).join(' and ');
}

/** Why a machine has failed, for clients. */
export function failureOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && !(error instanceof Error) && 'message' in error)
    return messageOf(error.message);
  return messageOf(error);
}
