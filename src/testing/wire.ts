/** What the testing kit calls a wire, and what it reads from the messages on it. */
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import type { CallToolResult } from '../protocol/types.ts';
import { isContentBlock } from '../results/content.ts';
import { isObjectInTest } from './test-json.ts';

/** One connection as a client holds it: whole messages as text. What `memory().connect()` gives is one; a child process can be made one. */
export interface Wire {
  send(text: string): void;
  onText(listener: (text: string) => void): void;
  /** Sends nothing more. */
  close(): void;
  /** Resolves with the reason once the connection is closed. */
  readonly closed: Promise<string>;
}

/** A message that crossed the wire. */
export interface SeenMessage {
  /** As the server sees it, and as its inspection tells it: `in` came from the client, `out` from the server. */
  readonly direction: 'in' | 'out';
  readonly text: string;
  /** `undefined` where the text is no JSON. */
  readonly parsed: JsonValue | undefined;
}

export interface SeenNotification {
  readonly method: string;
  /** Empty where the message has none. */
  readonly params: JsonObject;
}

/** The server answered with an error. */
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

/** The result in an answer, or the error to reject with. */
export function readAnswer(answer: JsonObject): JsonObject | Error {
  const { result, error } = answer;
  if (isObjectInTest(result)) return result;
  if (isObjectInTest(error) && typeof error.code === 'number')
    return new ErrorAnswer(error.code, String(error.message), error.data);
  return new Error(`expected a response with a result or an error, got ${JSON.stringify(answer)}`);
}

/** What a message says if it is a notification. */
export function asNotification(message: JsonValue | undefined): SeenNotification | undefined {
  if (!isObjectInTest(message) || typeof message.method !== 'string' || 'id' in message) return undefined;
  return { method: message.method, params: isObjectInTest(message.params) ? message.params : {} };
}

export function isCallToolResult(result: object): result is CallToolResult {
  return 'content' in result && Array.isArray(result.content) && result.content.every(isContentBlock);
}
