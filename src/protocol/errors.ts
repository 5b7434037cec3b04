/** Every error that Troupe puts on the wire, and the one function that turns an unknown error into one of them. */
import { describe, type JsonValue } from './json.ts';

/**
 * JSON-RPC 2.0 codes; the codes of MCP 2026-07-28 (basic/index "Error Codes"); and Troupe's own, which that page asks to
 * lie outside the range that JSON-RPC reserves. `docs/errors.md` has a heading for each, and a test says so.
 */
export const ErrorCode = {
  ParseError: -32700,
  InvalidRequest: -32600,
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603,
  /** 2025-11-25 and earlier; from 2026-07-28 it is InvalidParams. */
  ResourceNotFound: -32002,
  /** Headers of the HTTP request say something else than its body, or are missing (from 2026-07-28). */
  HeaderMismatch: -32020,
  MissingRequiredClientCapability: -32021,
  UnsupportedProtocolVersion: -32022,
  /** Too many requests in flight, or another bound reached. */
  Overloaded: -31001,
  /** A request's deadline passed. */
  TimedOut: -31002,
  /** The server is draining and takes no new requests. */
  ShuttingDown: -31003,
} as const;

export type ErrorCodeValue = (typeof ErrorCode)[keyof typeof ErrorCode];

/** The `error` member of a JSON-RPC error response. */
export interface WireError {
  readonly code: ErrorCodeValue;
  readonly message: string;
  readonly data?: JsonValue;
}

/** An error meant for the client: its message and data are shown as they are. Throw it from a handler to answer with a protocol error. */
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

/** A parameter that does not fit. @param where from `params` on, such as `arguments` or `_meta["…"]` */
export function misfit(where: string, expected: string, got: unknown): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, `params.${where}: expected ${expected}, got ${describe(got)}`);
}

/** Whether what was thrown speaks for itself. Never throws, though anything can be thrown: a Proxy may refuse to be looked at. */
export function isProtocolError(thrown: unknown): thrown is ProtocolError {
  try {
    return thrown instanceof ProtocolError;
  } catch {
    return false;
  }
}

/**
 * Turns whatever was thrown into what the client may see. Only a {@link ProtocolError} speaks for itself; anything else
 * was not written for a client (it may hold a path, a stack, a secret) and becomes a bare -32603 that names the incident.
 */
export function toWireError(error: unknown, incident: string): WireError {
  if (isProtocolError(error)) return wireError(error.code, error.message, error.data);
  return wireError(ErrorCode.InternalError, `Internal error (incident ${incident}; the server's log has the details)`);
}

export function wireError(code: ErrorCodeValue, message: string, data?: JsonValue): WireError {
  return data === undefined ? { code, message } : { code, message, data };
}
