/** Reads the params of the methods of events. */
import { misfit } from '../../core/protocol/errors.ts';
import { isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import {
  cursorOf,
  type EventsRead,
  type EventsRequest,
  type Params,
  textMember,
} from '../../core/protocol/operations.ts';

const NO_ARGUMENTS: JsonObject = Object.freeze({});

export function readEventsList(params: Params): EventsRequest {
  return { method: 'events/list', cursor: cursorOf(params) };
}

/** @throws {ProtocolError} -32602 */
export function readEventsRead(method: EventsRead['method'], params: Params): EventsRead {
  return {
    method,
    name: textMember(params, 'name'),
    arguments: subscriptionArguments(params),
    cursor: cursorOf(params),
    maxAgeMs: wholeMember(params, 'maxAgeMs', 0),
    maxEvents: wholeMember(params, 'maxEvents', 1),
  };
}

/** The arguments of a subscription. @throws {ProtocolError} -32602 */
export function subscriptionArguments(params: Params): JsonObject {
  const given = params?.arguments ?? undefined;
  if (given === undefined) return NO_ARGUMENTS;
  if (!isObject(given) || !isJsonObject(given)) throw misfit('arguments', 'an object', given);
  return given;
}

/** A whole number of params that may be absent. @throws {ProtocolError} -32602 */
export function wholeMember(params: Params, name: string, least: number): number | undefined {
  const value = params?.[name] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
  throw misfit(name, `a whole number of at least ${least}`, value);
}
