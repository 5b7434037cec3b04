/** What a `requestState` holds, sealed: where the conversation is, and what is needed to run its request anew where it is not. */

import type { ActiveRequest } from '../messages/active-request.ts';
import type { RecordedReply } from '../messages/input-messages.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { isObject, type JsonObject, type JsonValue, messageOf } from '../protocol/json.ts';
import { digest, type KeyRing } from './seal.ts';

export interface RequestState extends RecordedReply {
  readonly id: string;
  /** When it is no longer taken, in milliseconds since 1970. */
  readonly until: number;
  /** It cannot be run anew: what it has recorded is more than a state may hold. */
  readonly whole: boolean;
}

/**
 * @param maxLength longest state that is handed out, in characters; without what was recorded, where that is needed to keep to it
 * @returns the text, and why it is without what was recorded, where it is
 */
export function sealState(
  keys: KeyRing,
  state: RequestState,
  request: ActiveRequest,
  maxLength: number,
): { readonly text: string; readonly without?: string } {
  const { id, round, until, replies, steps } = state;
  const bound = boundTo(request);
  try {
    const text = keys.seal({ id, round, until, whole: true, replies: replies as JsonObject, steps }, bound);
    if (text.length <= maxLength) return { text };
    const why = `it would be ${text.length} characters long, and limits.maxStateLength is ${maxLength}`;
    return { text: keys.seal({ id, round, until, whole: false, replies: {}, steps: {} }, bound), without: why };
  } catch (error) {
    // A step gave what JSON cannot hold, or more than any state can.
    const text = keys.seal({ id, round, until, whole: false, replies: {}, steps: {} }, bound);
    return { text, without: messageOf(error) };
  }
}

/** @throws {ProtocolError} -32602, for what was not sealed here, or for another request or principal */
export function openState(keys: KeyRing, text: string, request: ActiveRequest): RequestState {
  const opened = keys.open(text, boundTo(request));
  if (!opened.ok)
    throw new ProtocolError(
      ErrorCode.InvalidParams,
      `params.requestState: expected the very state that this request was answered with, for the same principal, name and arguments; got one that ${opened.why === 'does not verify' ? 'does not verify' : `cannot be read (${opened.why})`}: send the request again without it`,
    );
  const { payload } = opened;
  if (!isState(payload)) throw new Error('a sealed state has another shape: was it sealed by another version?');
  return payload;
}

/** What a state is good for: one principal, one method, one name, the same arguments, one revision. */
function boundTo({ client, operation }: ActiveRequest): readonly string[] {
  const { principal, dialect } = client;
  switch (operation.method) {
    case 'tools/call':
    case 'prompts/get':
      return [principal, operation.method, operation.name, digest(operation.arguments as JsonValue), dialect.revision];
    case 'resources/read':
      return [principal, operation.method, operation.uri, dialect.revision];
    default:
      return [principal, operation.method, dialect.revision];
  }
}

function isState(value: unknown): value is RequestState {
  if (!isObject(value)) return false;
  const { id, round, until, whole, replies, steps } = value;
  return (
    typeof id === 'string' &&
    typeof round === 'number' &&
    typeof until === 'number' &&
    typeof whole === 'boolean' &&
    isObject(replies) &&
    isObject(steps)
  );
}
