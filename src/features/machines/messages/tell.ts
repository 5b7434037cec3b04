/** `tell`, the action with which a chart sends an event to an instance of another machine. */
import type { ActionArgs, ActionFunction, EventObject, MachineContext, ParameterizedObject } from 'xstate';
import { processWide } from '../../../core/kernel/global-registry.ts';

/** The event of a message: its members besides `type` are JSON data. */
export interface MessageBody {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The arguments of one {@link tell}, as its author gave them. */
export type TellArguments = readonly [machine: string, key: unknown, event: unknown];

type Params = ParameterizedObject['params'] | undefined;

/** The arguments of all actions of {@link tell}. Process-wide, because a machine may import another copy of this package. */
const given = processWide('troupe.tell', () => new WeakMap<object, TellArguments>());

/**
 * Creates an action that sends an event to an instance behind a handle. The message becomes durable in the commit of the turn that
 * runs the action, or not at all, and takes effect once in the state of the other instance, in order for each pair of instances.
 *
 * @param machine the name of a machine of this server (`server.machine`)
 * @param key the key of the instance, which it creates if needed; for a machine without keys, the id of a handle. Or a function
 *   that returns it
 * @param event the event, or a function that returns it: JSON data, and no event of XState's own. A machine receives it whether or not
 *   clients may send it
 * @throws {TypeError} in the turn, for a key or an event that cannot be sent
 * @example
 * createMachine({
 *   context: { sku: 'tea' },
 *   on: { order: { actions: tell('stock', ({ context }) => context.sku, { type: 'reserve', count: 1 }) } },
 * });
 */
export function tell<C extends MachineContext, X extends EventObject, P extends Params, E extends EventObject = X>(
  machine: string,
  key: string | ((args: ActionArgs<C, X, E>, params: P) => string),
  event: MessageBody | ((args: ActionArgs<C, X, E>, params: P) => MessageBody),
): ActionFunction<C, X, E, P, never, never, never, never, never> {
  const action = (): void => {
    throw new Error(`tell("${machine}", …): only an instance behind a handle has messages (server.machine)`);
  };
  Object.defineProperty(action, 'name', { value: `tell ${machine}` });
  given.set(action, [machine, key, event]);
  return action;
}

/** The arguments of an action that {@link tell} has created; undefined for any other. */
export function argumentsOfTell(action: object | undefined): TellArguments | undefined {
  return action && given.get(action);
}
