/**
 * The HTTP status of each response. It depends on the error and the era, so the protocol decides it, not the transport.
 */
import { ErrorCode, type ErrorCodeValue, NOT_RECORDED, type WireError } from './errors.ts';

/**
 * Status of a response to an admitted request. JSON-RPC errors leave with 200, except those for which a revision or
 * HTTP prescribes a status.
 */
const ANSWERED: ReadonlyMap<ErrorCodeValue, number> = new Map([
  // 2026-07-28 streamable-http "Server Validation", basic/index "Error Codes".
  [ErrorCode.HeaderMismatch, 400],
  [ErrorCode.MissingRequiredClientCapability, 400],
  [ErrorCode.UnsupportedProtocolVersion, 400],
  [ErrorCode.Overloaded, 429],
  // 2026-07-28 authorization "Scope Challenge Handling"; RFC 6750 section 3.1.
  [ErrorCode.Forbidden, 403],
  [ErrorCode.EventForbidden, 403],
  [ErrorCode.SketchForbidden, 403],
  [ErrorCode.ShuttingDown, 503],
  [ErrorCode.UpstreamUnavailable, 503],
]);

export function statusOfAnswer(error: WireError | undefined): number {
  if (error === undefined) return 200;
  return error.data === NOT_RECORDED ? 503 : (ANSWERED.get(error.code) ?? 200);
}

/**
 * The status for a message that the inbound codec rejects.
 *
 * @param inSession the message is a request of a session. A 404 would mean that the session has ended (2025-11-25
 * transports, "Session Management"). The official SDKs hide the body of any response but 200, so errors that JSON-RPC
 * can express leave with 200.
 */
export function statusOfRefusal(code: ErrorCodeValue, inSession: boolean): number {
  switch (code) {
    case ErrorCode.MethodNotFound:
      return inSession ? 200 : 404;
    case ErrorCode.InvalidParams:
      return inSession ? 200 : 400;
    case ErrorCode.InternalError:
      return inSession ? 200 : 500;
    default:
      return ANSWERED.get(code) ?? 400;
  }
}
