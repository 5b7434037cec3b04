/** The errors of a client: why a call failed, and whether the server may have carried it out. */
import type { JsonValue } from '../core/protocol/json.ts';
import type { Challenge } from './authorization.ts';

/**
 * The reason of a failed call.
 *
 * - `unreachable`: no connection, or the server does not respond.
 * - `refused`: the program cannot be started, or the server rejects the connection.
 * - `not mcp`: the peer answers, but not as an MCP server.
 * - `no common revision`: the server speaks only revisions that this client does not.
 * - `unauthorized`, `forbidden`: sign-in is missing or failed; the token's scopes do not suffice.
 * - `closed`: the connection ended before the response.
 * - `timed out`: no response within the deadline.
 * - `cancelled`: the caller's signal was aborted.
 * - `too long`: a message exceeds `maxMessageBytes`.
 * - `malformed`: the response does not have the shape that the specification demands.
 * - `overloaded`: the client's own limit is reached, or the server asks to wait.
 * - `tool error`: the result of the tool is an error (`data` only; `call` returns it).
 * - `error response`: the server responded with a JSON-RPC error; see {@link ErrorResponse}.
 * - `too many rounds`: the server requested input more often than `maxRounds`.
 */
export type FailureReason =
  | 'unreachable'
  | 'refused'
  | 'not mcp'
  | 'no common revision'
  | 'unauthorized'
  | 'forbidden'
  | 'closed'
  | 'timed out'
  | 'cancelled'
  | 'too long'
  | 'malformed'
  | 'overloaded'
  | 'tool error'
  | 'error response'
  | 'too many rounds';

/** Tells whether the server carried out a failed call. `unknown`: the request was sent, and no response arrived. */
export type CarriedOut = 'no' | 'yes' | 'unknown';

export interface CallFailure {
  readonly reason: FailureReason;
  readonly message: string;
  readonly carriedOut: CarriedOut;
  /** Milliseconds after which the server asks to try again (`Retry-After`). */
  readonly retryAfterMs?: number | undefined;
  /** The demand of the server, if it wants another token. */
  readonly challenge?: Challenge | undefined;
  readonly cause?: unknown;
}

/**
 * A call that failed. The client itself repeats only requests that were certainly not carried out, and requests that
 * only read; so `carriedOut` tells the caller whether a repeat is safe.
 */
export class ClientError extends Error {
  override readonly name: string = 'ClientError';
  /** The server, as the caller named it: a URL, a command, or a socket. */
  readonly server: string;
  readonly reason: FailureReason;
  readonly carriedOut: CarriedOut;
  readonly retryAfterMs: number | undefined;
  /** The demand of the server, if it wants another token: reasons `unauthorized` and `forbidden`. */
  readonly challenge: Challenge | undefined;

  constructor(server: string, { reason, message, carriedOut, retryAfterMs, challenge, cause }: CallFailure) {
    super(`${server}: ${message}`, cause === undefined ? {} : { cause });
    this.server = server;
    this.reason = reason;
    this.carriedOut = carriedOut;
    this.retryAfterMs = retryAfterMs;
    this.challenge = challenge;
  }
}

/** A JSON-RPC error of the server: code, message and data as they came. */
export class ErrorResponse extends ClientError {
  override readonly name = 'ErrorResponse';
  readonly code: number;
  readonly data: JsonValue | undefined;
  /** The message as the server sent it. */
  readonly text: string;

  constructor(server: string, code: number, message: string, data: JsonValue | undefined) {
    super(server, { reason: 'error response', message: `${message} (code ${code})`, carriedOut: 'unknown' });
    this.code = code;
    this.data = data;
    this.text = message;
  }
}
