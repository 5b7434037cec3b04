/** Recognizes the response of a server that does not know the session of a request. Such a server has carried nothing out. */

/** Codes of the transports of the official SDKs for a request that reached no session. */
const TRANSPORT_CODES: readonly number[] = [-32000, -32001];

/**
 * True if a response of HTTP 400 to a request of a session means that the session is unknown. The status of the specification is
 * 404 (2025-11-25 transports, "Session Management"). Many servers, among them the example of the official SDK, respond 400.
 *
 * @param error the JSON-RPC error of the response. Another body says nothing else
 */
export function isLostSession(error: { readonly code: number; readonly message: string }): boolean {
  return TRANSPORT_CODES.includes(error.code) || /session|not initialized/i.test(error.message);
}
