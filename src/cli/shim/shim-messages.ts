/** The few messages that a shim says itself, as lines. */

const INTERNAL_ERROR = -32_603;

/** @param key the id, as JSON has it */
export function failure(key: string, message: string, code = INTERNAL_ERROR): string {
  return JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(key), error: { code, message } });
}

export function notification(method: string, params?: object): string {
  return JSON.stringify({ jsonrpc: '2.0', method, ...(params ? { params } : {}) });
}

/** The same message under another id. @param key the id, as JSON has it */
export function withId(body: Readonly<Record<string, unknown>>, key: string): string {
  return JSON.stringify({ ...body, id: JSON.parse(key) });
}

/** An id as JSON has it, which tells 1 from "1". */
export function idKey(id: unknown): string {
  return String(JSON.stringify(id));
}
