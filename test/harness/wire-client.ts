/** Checks what a client sends: each request, notification and response fits the official schema of its revision. */
import { isObject } from '../../src/core/protocol/json.ts';
import type { RequestId } from '../../src/core/protocol/jsonrpc.ts';
import { META } from '../../src/core/protocol/meta.ts';
import { isLegacyRevision, LATEST_LEGACY, LATEST_MODERN, type Revision } from '../../src/core/protocol/revisions.ts';
import { complain, type Direction, official, requestFaults, typed, wireChecker } from './wire.ts';
import { officialSchema } from './wire-schemas.ts';

/** For each request of a server, the type of its result. */
const RESULTS: Readonly<Record<string, string>> = {
  'elicitation/create': 'ElicitResult',
  'sampling/createMessage': 'CreateMessageResult',
  'roots/list': 'ListRootsResult',
  ping: 'EmptyResult',
};

/**
 * Checks a conversation in both directions, message by message: the server's as `wireChecker` does, and the client's.
 *
 * @param revision of the session
 * @throws {Error} from the returned function, for a message with faults; it lists them
 */
export function clientWireChecker(revision: Revision): (direction: Direction, text: string) => void {
  const conversation = wireChecker(revision);
  const asked = new Map<RequestId, string>();
  return (direction, text) => {
    const message: unknown = JSON.parse(text);
    if (direction === 'out' && isObject(message) && typeof message.method === 'string' && isId(message.id))
      asked.set(message.id, message.method);
    if (direction === 'in') complain(sentFaults(message, revision, asked), text);
    conversation(direction, text);
  };
}

function sentFaults(message: unknown, revision: Revision, asked: Map<RequestId, string>): readonly string[] {
  if (!isObject(message)) return ['expected an object'];
  const params = isObject(message.params) ? message.params : {};
  const meta = isObject(params._meta) ? params._meta : {};
  const named = meta[META.protocolVersion] !== undefined;
  // Both eras ask a server of unknown era for its own, whatever the conversation turns out to be.
  const opens = message.method === 'initialize' && !isLegacyRevision(revision);
  const spoken = named ? LATEST_MODERN : opens ? LATEST_LEGACY : revision;
  const faults = typed('JSONRPCMessage', message, spoken);
  if (typeof message.method === 'string') {
    if (message.id !== undefined) return [...faults, ...requestFaults(message.method, message, spoken)];
    return [...faults, ...official('ClientNotification', message, spoken)];
  }
  if (!isLegacyRevision(spoken)) return [...faults, `a response, which a client of ${spoken} does not send`];
  if (!isId(message.id)) return [...faults, 'a response without an id'];
  const method = asked.get(message.id);
  asked.delete(message.id);
  if (method === undefined) return [...faults, `answers request ${message.id}, which the server did not send`];
  const type = RESULTS[method];
  if (type === undefined || message.result === undefined || !officialSchema(spoken)?.has(type)) return faults;
  return [...faults, ...official(type, message.result, spoken)];
}

function isId(value: unknown): value is RequestId {
  return typeof value === 'string' || typeof value === 'number';
}
