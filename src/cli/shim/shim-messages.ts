/** Builds the JSON-RPC messages that a shim sends itself. */

const INTERNAL_ERROR = -32_603;

/** Builds an error response. @param key the id as JSON */
export function failure(key: string, message: string, code = INTERNAL_ERROR): string {
  return JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(key), error: { code, message } });
}

export function notification(method: string, params?: object): string {
  return JSON.stringify({ jsonrpc: '2.0', method, ...(params ? { params } : {}) });
}

/** Replaces the id of a message. @param key the new id as JSON */
export function withId(body: Readonly<Record<string, unknown>>, key: string): string {
  return JSON.stringify({ ...body, id: JSON.parse(key) });
}

/** Converts an id to JSON, which distinguishes 1 from "1". */
export function idKey(id: unknown): string {
  return String(JSON.stringify(id));
}
