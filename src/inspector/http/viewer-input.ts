/** Validates the input of viewers. */
import { describe, isObject } from '../../core/protocol/json.ts';

/** An invalid request of a viewer, with an HTTP status. */
export class InputError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** An event for a statechart, as a viewer writes it. */
export type AnyEvent = { readonly type: string; readonly [name: string]: unknown };

/** Maximum length of the name of a viewer or an actor. */
const MAX_NAME = 1_000;
const VIEWER = /^[\w-]{1,64}$/;

/** @throws {InputError} for an invalid event, and for XState's own events */
export function readViewerEvent(given: unknown): AnyEvent {
  const { type, ...data } = isObject(given) ? given : {};
  if (typeof type !== 'string' || type === '')
    throw new InputError(400, `event: expected an object with a type, such as {"type":"pay"}, got ${describe(given)}`);
  if (type.startsWith('xstate.') || type.includes('*'))
    throw new InputError(
      400,
      `event: expected a type of the statechart's author, got "${type}": XState sends its own events`,
    );
  return { ...data, type };
}

/** @throws {InputError} */
export function readViewer(given: unknown): string {
  if (typeof given === 'string' && VIEWER.test(given)) return given;
  throw new InputError(400, `viewer: expected 1 to 64 characters of A-Z, a-z, 0-9, - and _, got ${describe(given)}`);
}

/** @throws {InputError} */
export function readActor(given: unknown): string {
  if (typeof given === 'string' && given !== '' && given.length <= MAX_NAME) return given;
  throw new InputError(400, `actor: expected an address of at most ${MAX_NAME} characters, got ${describe(given)}`);
}

/** @throws {InputError} */
export function readActors(given: unknown): readonly string[] {
  if (!Array.isArray(given)) throw new InputError(400, `actors: expected a list of addresses, got ${describe(given)}`);
  return given.map(readActor);
}
