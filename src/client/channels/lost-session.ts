/** Recognizes the response of a server that does not know the session of a request. */

/** Codes of the transports of the official SDKs for a request that reached no session. */
const TRANSPORT_CODES: readonly number[] = [-32000, -32001];

/**
 * Texts of servers for a session that they do not know: of the official SDKs of TypeScript, Python, Java, C# and Rust, of mcp-go and
 * of FastMCP.
 */
const WORDS =
  /\bsession(?:[ _-]?id)?\b.{0,40}\b(?:not found|not valid|not exist|unknown|invalid|expired|terminated|closed|missing|required|no longer)\b|\b(?:unknown|invalid|expired|missing|no valid|no such|no active|no transport found for|not find)\b.{0,20}\bsession|\bnot initialized\b|\bexpect(?:ed|s)? (?:an )?initialize\b/i;

/** True for the statuses with which a server says that it does not know a session (2025-11-25 transports, "Session Management"). */
export function isGone(status: number): boolean {
  return status === 404 || status === 410;
}

/** True if the explanation of a rejected request says that its session is unknown. */
export function saysLostSession(text: string): boolean {
  return WORDS.test(text);
}

/**
 * True if a JSON-RPC error with a status of 400 or above means that the session of its request is unknown. The status of the
 * specification is 404 (2025-11-25 transports, "Session Management"). Many servers, among them the example of the official SDK,
 * respond 400.
 */
export function isLostSession(status: number, error: { readonly code: number; readonly message: string }): boolean {
  if (status !== 400) return saysLostSession(error.message);
  return TRANSPORT_CODES.includes(error.code) || /session|not initialized/i.test(error.message);
}
