/** The wire of the testing kit, and the readers of its messages. */

import { ErrorResponse } from '../client/client-errors.ts';
import type { JsonObject, JsonValue } from '../core/protocol/json.ts';
import { isObjectInTest } from './test-json.ts';

/**
 * One connection from the client's side: whole messages as text. `memory().connect()` returns one; a child process can
 * be wrapped as one.
 */
export interface Wire {
  send(text: string): void;
  onText(listener: (text: string) => void): void;
  /** Ends the input. */
  close(): void;
  /** Resolves with the reason once the connection is closed. */
  readonly closed: Promise<string>;
}

/** The server in the errors of a test. */
export const TARGET = 'the server under test';

/** A message on the wire. */
export interface SeenMessage {
  /** From the server's view, as in its inspection: `in` came from the client, `out` from the server. */
  readonly direction: 'in' | 'out';
  readonly text: string;
  /** `undefined` if the text is not JSON. */
  readonly parsed: JsonValue | undefined;
}

export interface SeenNotification {
  readonly method: string;
  /** Empty if the message has none. */
  readonly params: JsonObject;
}

/** The result in a response, or the error for the rejection. */
export function readAnswer(answer: JsonObject): JsonObject | Error {
  const { result, error } = answer;
  if (isObjectInTest(result)) return result;
  if (isObjectInTest(error) && typeof error.code === 'number')
    return asSent(new ErrorResponse(TARGET, error.code, String(error.message), error.data));
  return new Error(`expected a response with a result or an error, got ${JSON.stringify(answer)}`);
}

/** The message of a raw request's error is the server's, without additions. */
function asSent(error: ErrorResponse): ErrorResponse {
  error.message = error.text;
  return error;
}

/** The method and params of a message if it is a notification. */
export function asNotification(message: JsonValue | undefined): SeenNotification | undefined {
  if (!isObjectInTest(message) || typeof message.method !== 'string' || 'id' in message) return undefined;
  return { method: message.method, params: isObjectInTest(message.params) ? message.params : {} };
}
