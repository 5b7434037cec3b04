/** A request that a gateway passes on for a client of its own. Types only. */
import type { JsonObject } from '../core/protocol/json.ts';
import type { RequestId } from '../core/protocol/jsonrpc.ts';
import type { ClientCapabilities, LogLevel } from '../core/protocol/types.ts';
import type { Authorization } from './authorization.ts';
import type { ServerLogMessage, ServerProgress } from './client-options.ts';

/** A request of a legacy server during a call. */
export interface AskedRequest {
  readonly method: string;
  readonly params: JsonObject;
  /** It may belong to another call of the same caller, which is in flight, too. */
  readonly doubtful?: true;
}

/** The place of a call in a legacy session over HTTP, from which another process continues it. */
export interface CallPosition {
  /** The session and its revision. */
  readonly session: string;
  readonly revision: string;
  /** The id of the call. */
  readonly id: number;
  /** The id of the last event on the stream of the call. */
  readonly lastEventId: string;
  /** The id of the server's request that is open. */
  readonly asked: RequestId;
}

/** A request of a server that has no response yet. */
export interface UnansweredRequest extends AskedRequest {
  readonly id: RequestId;
}

/** A call that another process has begun, and the server's requests that it did not answer. */
export interface ResumedCall {
  readonly position: CallPosition;
  readonly open: readonly UnansweredRequest[];
}

/**
 * Answers a request of a legacy server, verbatim in both directions. A ProtocolError becomes the error that the server
 * gets. The signal is aborted if the server cancels its request, or if the call ends before the answer.
 *
 * @param position undefined where another process cannot continue the call: its stream has no event ids
 */
export type AnswerAsked = (request: AskedRequest, signal: AbortSignal, position?: CallPosition) => Promise<JsonObject>;

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
  /** Continues a call of another process in place of making one. The client must be one of that session. */
  readonly resumes?: ResumedCall | undefined;
}
