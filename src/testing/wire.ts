/** The wire of the testing kit, and the readers of its messages. */

import { isContentBlock } from '../core/execution/content.ts';
import type { JsonObject, JsonValue } from '../core/protocol/json.ts';
import type { CallToolResult } from '../core/protocol/types.ts';
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

/** An error response from the server. */
export class ErrorAnswer extends Error {
  override readonly name = 'ErrorAnswer';
  readonly code: number;
  readonly data: JsonValue | undefined;

  constructor(code: number, message: string, data: JsonValue | undefined) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The result in a response, or the error for the rejection. */
export function readAnswer(answer: JsonObject): JsonObject | Error {
  const { result, error } = answer;
  if (isObjectInTest(result)) return result;
  if (isObjectInTest(error) && typeof error.code === 'number')
    return new ErrorAnswer(error.code, String(error.message), error.data);
  return new Error(`expected a response with a result or an error, got ${JSON.stringify(answer)}`);
}

/** The method and params of a message if it is a notification. */
export function asNotification(message: JsonValue | undefined): SeenNotification | undefined {
  if (!isObjectInTest(message) || typeof message.method !== 'string' || 'id' in message) return undefined;
  return { method: message.method, params: isObjectInTest(message.params) ? message.params : {} };
}

export function isCallToolResult(result: object): result is CallToolResult {
  return 'content' in result && Array.isArray(result.content) && result.content.every(isContentBlock);
}
