/** The events that the program itself sends to instances of machines: `server.send`. */
import { describe, isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { PROGRAM } from '../../core/protocol/principals.ts';
import type { HandleEvent } from './handle-messages.ts';
import type { Caller } from './machine-definition.ts';

/** The program: it needs no role, and has no client that could be asked. */
export const PROGRAM_CALLER: Caller = { principal: PROGRAM, ctx: undefined, isProgram: true };

/** @throws {TypeError} for anything but an object of JSON data with a `type` */
export function programEvent(event: unknown): HandleEvent {
  if (!isJsonObject(event) || typeof event.type !== 'string' || event.type === '')
    throw new TypeError(`server.send: event: expected an object such as { type: 'pay' }, got ${describe(event)}`);
  const { type, ...data }: JsonObject & { readonly type?: unknown } = event;
  return { type: String(type), data };
}
