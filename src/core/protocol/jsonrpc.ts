/** The message shapes of JSON-RPC 2.0 as MCP uses it, and the one function that classifies a message. */
import { describe, isObject } from './json.ts';

/** A string or an integer, never `null` (MCP base protocol, "Requests"). */
export type RequestId = string | number;

export type Incoming =
  | {
      readonly kind: 'request';
      readonly id: RequestId;
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>> | undefined;
    }
  | {
      readonly kind: 'notification';
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>> | undefined;
    }
  | { readonly kind: 'response'; readonly id: RequestId; readonly result?: unknown; readonly error?: unknown }
  /**
   * `id` is the request's id if it was readable. `answer` is false if JSON-RPC forbids a response (to a broken
   * notification or response).
   */
  | { readonly kind: 'invalid'; readonly id: RequestId | undefined; readonly answer: boolean; readonly why: string };

export function isRequestId(value: unknown): value is RequestId {
  return typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value));
}

/**
 * Classifies one parsed JSON value. Never throws.
 *
 * @example readIncoming({ jsonrpc: '2.0', id: 1, method: 'ping' }).kind === 'request'
 * @see JSON-RPC 2.0 sections 4 and 5; MCP basic/index "Messages"
 */
export function readIncoming(value: unknown): Incoming {
  if (!isObject(value))
    return invalid(undefined, true, `expected a JSON-RPC message (an object), got ${describe(value)}`);
  const { id, method } = value;
  // JSON-RPC demands a structured value; some programs write null for none.
  const params = value.params ?? undefined;
  const readable = isRequestId(id) ? id : undefined;
  if (method === undefined && ('result' in value || 'error' in value)) {
    if (value.jsonrpc !== '2.0' || readable === undefined)
      return invalid(undefined, false, 'a response needs "jsonrpc": "2.0" and the id of a request');
    // Both members in each response, one of them null, as in JSON-RPC 1.0.
    return { kind: 'response', id: readable, result: value.result, error: value.error ?? undefined };
  }
  if (id !== undefined && readable === undefined)
    return invalid(
      undefined,
      true,
      `id: expected a string or an integer up to 2^53-1 (send a larger number as a string), got ${describe(id)}`,
    );
  const answer = id !== undefined || typeof method !== 'string';
  if (value.jsonrpc !== '2.0')
    return invalid(readable, answer, `jsonrpc: expected "2.0", got ${describe(value.jsonrpc)}`);
  if (typeof method !== 'string')
    return invalid(readable, answer, `method: expected a string, got ${describe(method)}`);
  if (params !== undefined && !isObject(params))
    return invalid(readable, answer, `params: expected an object, got ${describe(params)}`);
  if (readable === undefined) return { kind: 'notification', method, params };
  return { kind: 'request', id: readable, method, params };
}

function invalid(id: RequestId | undefined, answer: boolean, why: string): Incoming {
  return { kind: 'invalid', id, answer, why };
}
