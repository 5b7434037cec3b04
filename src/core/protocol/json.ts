/** JSON types, the guards that narrow an unknown value, and its description in messages. */

export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}

/** True for a plain JSON object: not `null`, not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The same guard for a value that is known to be JSON although its type does not say so, because it was parsed or
 * checked.
 */
export function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value);
}

/** True if no text of a value has half of a surrogate pair, which UTF-8 cannot carry. */
export function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isWellFormed);
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormed(member));
}

/** True for an awaitable value: a promise of this realm or another, or of a library. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (value instanceof Promise) return true;
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Describes a value for an error message: `string "abc"`, `array of 3`, `null`. At most 60 characters. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (typeof value === 'string') return `string "${value.length > 40 ? `${value.slice(0, 40)}…` : value}"`;
  if (typeof value === 'object') return 'object';
  if (typeof value === 'number' || typeof value === 'boolean') return `${typeof value} ${String(value)}`;
  return typeof value;
}

/** The text of a thrown value: an error's message, or the value as a string. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message || thrown.name : thrown);
  } catch {
    return 'the thrown value has no text';
  }
}

/** The text of a thrown value for an operator, with the stack if there is one. */
export function stackOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? (thrown.stack ?? thrown.message) : thrown);
  } catch {
    return messageOf(thrown);
  }
}

/** Cuts a text that a client may have chosen. The result is a copy: a slice would retain the whole text. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${Buffer.from(text.slice(0, length)).toString()}…`;
}
