/** Finds values in a question that JSON cannot represent while the author can still receive the error. */
import { isObject } from '../protocol/json.ts';

/**
 * @param at the place of the value, for error messages
 * @throws {TypeError} for a BigInt or a cycle
 */
export function checkWritable(value: unknown, at: string, around: readonly unknown[] = []): void {
  if (typeof value === 'bigint') throw new TypeError(`${at}: expected JSON data, got bigint`);
  if (typeof value !== 'object' || value === null) return;
  if (around.includes(value)) throw new TypeError(`${at}: expected JSON data, got a cycle`);
  // A value with `toJSON`, such as a date, is not examined.
  if (isObject(value) && typeof value.toJSON === 'function') return;
  for (const [name, member] of Object.entries(value)) checkWritable(member, `${at}.${name}`, [...around, value]);
}
