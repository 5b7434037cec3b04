/** Evaluates the guard of a transition outside of XState's own step. */
import { type AnyEventObject, type AnyMachineSnapshot, and } from 'xstate';
import { messageOf } from '../../protocol/json.ts';

/** The result of a guard, or the error that it threw. */
type GuardResult = { readonly allows: boolean } | { readonly threw: string };

/** Evaluates a guard of any form. XState's own `and` accepts all forms, and its member `check` evaluates them. */
export function guardResult(guard: unknown, snapshot: AnyMachineSnapshot, event: AnyEventObject): GuardResult {
  try {
    const joined: unknown = Reflect.apply(and, undefined, [[guard]]);
    const check: unknown = typeof joined === 'function' ? Reflect.get(joined, 'check') : undefined;
    if (typeof check !== 'function') return { threw: 'cannot evaluate guards with this version of XState' };
    return { allows: Boolean(check(snapshot, { context: snapshot.context, event }, joined)) };
  } catch (error) {
    return { threw: messageOf(error) };
  }
}

/** The result of a guard for an event without data; `unknown` if it throws or reads data of the event. */
export function guardWithoutData(guard: unknown, snapshot: AnyMachineSnapshot, type: string): 'yes' | 'no' | 'unknown' {
  let isRead = false;
  const event = new Proxy(
    { type },
    {
      get(target, name) {
        if (name === 'type') return target.type;
        isRead = true;
        return undefined;
      },
      has(target, name) {
        isRead ||= name !== 'type';
        return name in target;
      },
    },
  );
  const result = guardResult(guard, snapshot, event);
  if ('threw' in result || isRead) return 'unknown';
  return result.allows ? 'yes' : 'no';
}
