/** Every error that Troupe puts on the wire, and the one function that turns an unknown error into one of them. */
import { describe, type JsonValue } from './json.ts';

/**
 * JSON-RPC 2.0 codes, the codes of MCP 2026-07-28 (basic/index "Error Codes"), and Troupe's own. That page requires own
 * codes to lie outside the range that JSON-RPC reserves. `docs/errors.md` has a heading for each code; a test checks
 * it.
 */
export const ErrorCode = {
  ParseError: -32700,
  InvalidRequest: -32600,
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603,
  /** 2025-11-25 and earlier. From 2026-07-28 the code is InvalidParams. */
  ResourceNotFound: -32002,
  /** A header of the HTTP request contradicts the body or is missing (from 2026-07-28). */
  HeaderMismatch: -32020,
  MissingRequiredClientCapability: -32021,
  UnsupportedProtocolVersion: -32022,
  /** The server has too many requests in flight, or another limit is reached. */
  Overloaded: -31001,
  /** The request's deadline passed. */
  TimedOut: -31002,
  /** The server is draining and accepts no new requests. */
  ShuttingDown: -31003,
  /** The caller lacks scopes, or a rule rejects the request. */
  Forbidden: -31004,
  /** A mounted server cannot be reached, and has not carried the request out. */
  UpstreamUnavailable: -31005,
  /** Events (SEP-3415). */
  EventNotFound: -32023,
  EventForbidden: -32024,
  EventExhausted: -32025,
  EventUnsupported: -32026,
  CallbackFailed: -32027,
  /** The same for clients that follow the design sketch of events. */
  SketchNotFound: -32011,
  SketchForbidden: -32012,
  SketchExhausted: -32013,
  SketchUnsupported: -32014,
  SketchCallbackFailed: -32015,
} as const;

export type ErrorCodeValue = (typeof ErrorCode)[keyof typeof ErrorCode];

/** The `error` member of a JSON-RPC error response. */
export interface WireError {
  readonly code: ErrorCodeValue;
  readonly message: string;
  readonly data?: JsonValue;
}

/**
 * An error meant for the client, which receives its message and data unchanged. Throw it from a handler to respond with
 * a protocol error.
 */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly code: ErrorCodeValue;
  readonly data: JsonValue | undefined;

  constructor(code: ErrorCodeValue, message: string, data?: JsonValue) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Marks a tool error of any copy of this package: `troupe dev` may load another copy. */
const TOOL_ERROR = Symbol.for('troupe.tool-error');

/**
 * An error whose message the author wrote for the model. It is sent unchanged also with `errors: 'masked'`: as an error
 * result of a tool, or as the message of error -32603 of a resource, a prompt or a completion.
 *
 * @example throw new ToolError('There is no city with that name. Call "cities" to list them.');
 */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly [TOOL_ERROR] = true;
}

/** The data of the error for a call that the audit log could not record: over HTTP, the status is then 503. */
export const NOT_RECORDED: JsonValue = Object.freeze({ reason: 'audit' });

/** An error for an invalid parameter. @param where path below `params`, such as `arguments` or `_meta["…"]` */
export function misfit(where: string, expected: string, got: unknown): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, `params.${where}: expected ${expected}, got ${describe(got)}`);
}

/** True if a thrown value is a {@link ProtocolError}. Never throws: a handler may throw a Proxy whose traps throw. */
export function isProtocolError(thrown: unknown): thrown is ProtocolError {
  try {
    return thrown instanceof ProtocolError;
  } catch {
    return false;
  }
}

/** True if a thrown value is a {@link ToolError}. Never throws. */
export function isToolError(thrown: unknown): thrown is ToolError {
  try {
    return thrown instanceof Error && TOOL_ERROR in thrown;
  } catch {
    return false;
  }
}

/** True for errors whose message was written for the client. */
export function isForClient(thrown: unknown): thrown is ProtocolError | ToolError {
  return isProtocolError(thrown) || isToolError(thrown);
}

/**
 * Converts a thrown value into the error that the client receives. Only a {@link ProtocolError} and the message of a
 * {@link ToolError} pass unchanged. Any other value was not written for a client and may contain a path, a stack or a
 * secret: it becomes a -32603 with only the incident's id.
 */
export function toWireError(error: unknown, incident: string): WireError {
  if (isProtocolError(error)) return wireError(error.code, error.message, error.data);
  if (isToolError(error)) return wireError(ErrorCode.InternalError, error.message);
  return wireError(ErrorCode.InternalError, `Internal error (incident ${incident}; the server's log has the details)`);
}

export function wireError(code: ErrorCodeValue, message: string, data?: JsonValue): WireError {
  return data === undefined ? { code, message } : { code, message, data };
}
