/** The HTTP status that goes with each answer. Decided here, and not by the transport, because it hangs on the error and the era. */
import { ErrorCode, type ErrorCodeValue, type WireError } from './errors.ts';

/** What an admitted request is answered with: an error is the protocol's business and leaves with 200, but for those that a revision or HTTP itself rules. */
const ANSWERED: ReadonlyMap<ErrorCodeValue, number> = new Map([
  // 2026-07-28 streamable-http "Server Validation", basic/index "Error Codes".
  [ErrorCode.HeaderMismatch, 400],
  [ErrorCode.MissingRequiredClientCapability, 400],
  [ErrorCode.UnsupportedProtocolVersion, 400],
  [ErrorCode.Overloaded, 429],
  [ErrorCode.ShuttingDown, 503],
]);

export function statusOfAnswer(error: WireError | undefined): number {
  return error === undefined ? 200 : (ANSWERED.get(error.code) ?? 200);
}

/**
 * The status of a message that the door refuses.
 *
 * @param inSession the message is a request of a session. 404 would tell its client that the session is gone (2025-11-25
 *   transports, "Session Management"), and its SDKs hide the body of anything but 200: what JSON-RPC can say is said with 200.
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
