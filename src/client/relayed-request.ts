/** A request that a gateway passes on for a client of its own. Types only. */
import type { JsonObject } from '../protocol/json.ts';
import type { ClientCapabilities, LogLevel } from '../protocol/types.ts';
import type { Authorization } from './authorization.ts';
import type { ServerLogMessage, ServerProgress } from './client-options.ts';

/** A request of a legacy server during a call. */
export interface AskedRequest {
  readonly method: string;
  readonly params: JsonObject;
}

/**
 * Answers a request of a legacy server, verbatim in both directions. A ProtocolError becomes the error that the server
 * gets. The signal is aborted if the server cancels its request, or if the call ends before the answer.
 */
export type AnswerAsked = (request: AskedRequest, signal: AbortSignal) => Promise<JsonObject>;

export interface RelayedRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly signal?: AbortSignal | undefined;
  /** Members of `_meta`, such as `traceparent`. */
  readonly meta?: JsonObject | undefined;
  /** The least severe log messages that the caller wants. A legacy server gets the least severe level of all callers. */
  readonly logLevel?: LogLevel | undefined;
  readonly timeoutMs?: number | undefined;
  readonly maxTimeoutMs?: number | undefined;
  /** A repeat after a lost connection does no harm. Methods that only read are repeated in any case. */
  readonly repeatable?: boolean | undefined;
  onProgress?(progress: ServerProgress): void;
  onLog?(message: ServerLogMessage): void;
  /** Declared for this request in place of the capabilities of the connection (modern servers). */
  readonly capabilities?: ClientCapabilities | undefined;
  /**
   * Authorizes this request in place of the connection's authorization. A demand of the server for another token rejects it
   * with an error that has a `challenge`.
   */
  readonly authorization?: Authorization | undefined;
  /** Answers the server's requests during this call. While one is open, no call of the connection times out. */
  ask?: AnswerAsked | undefined;
}
