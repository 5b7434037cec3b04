/** The payload of a sealed `requestState`: the id of the interactive request, and the data to run its request again if it no longer exists. */

import type { RecordedReply } from '../../core/messages/client-input.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { isObject, type JsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { digest, type KeyRing } from '../../core/store/seal.ts';

export interface RequestState extends RecordedReply {
  readonly id: string;
  /** The date at which it expires, in milliseconds since 1970. */
  readonly until: number;
  /** False if the request cannot run again because its recorded data did not fit into the state. */
  readonly whole: boolean;
}

/**
 * Seals a state, without the recorded data if the text would be longer than `maxLength`.
 *
 * @param maxLength maximum length of a state in characters
 * @returns the text, and the reason if the recorded data is omitted
 */
export function sealState(
  keys: KeyRing,
  state: RequestState,
  request: RequestView,
  maxLength: number,
): { readonly text: string; readonly without?: string } {
  const { id, round, until, replies, steps, trace } = state;
  const traced = trace === undefined ? {} : { trace };
  const bound = boundTo(request);
  try {
    const text = keys.seal({ id, round, until, whole: true, replies: replies as JsonObject, steps, ...traced }, bound);
    if (text.length <= maxLength) return { text };
    const why = `it has ${text.length} characters, and limits.maxStateLength is ${maxLength}`;
    return {
      text: keys.seal({ id, round, until, whole: false, replies: {}, steps: {}, ...traced }, bound),
      without: why,
    };
  } catch (error) {
    // A step returned data that JSON cannot represent or that no state can hold.
    const text = keys.seal({ id, round, until, whole: false, replies: {}, steps: {}, ...traced }, bound);
    return { text, without: messageOf(error) };
  }
}

/** @throws {ProtocolError} -32602 for a text that was not sealed here, or that belongs to another request or principal */
export function openState(keys: KeyRing, text: string, request: RequestView): RequestState {
  const opened = keys.open(text, boundTo(request));
  if (!opened.ok)
    throw new ProtocolError(
      ErrorCode.InvalidParams,
      `params.requestState: expected the unchanged state that this server returned for the same principal, name and arguments; got one that ${opened.why === 'does not verify' ? 'does not verify' : `cannot be read (${opened.why})`}. Send the request again without it`,
    );
  const { payload } = opened;
  if (!isState(payload))
    throw new Error('a sealed state has an unexpected shape. Another version of the server may have sealed it');
  return payload;
}

/** The scope of a state: principal, method, name, arguments and revision. */
function boundTo({ client, operation }: RequestView): readonly string[] {
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
  const { id, round, until, whole, replies, steps, trace } = value;
  return (
    typeof id === 'string' &&
    typeof round === 'number' &&
    typeof until === 'number' &&
    typeof whole === 'boolean' &&
    isObject(replies) &&
    isObject(steps) &&
    (trace === undefined || typeof trace === 'string')
  );
}
