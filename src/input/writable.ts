/** Finds what JSON cannot hold in a question, while it can still be told to its author: later it would fail whoever writes it. */
import { isObject } from '../protocol/json.ts';

/**
 * @param at its place, for the error
 * @throws {TypeError} for what cannot be written: a BigInt, or an object that is part of itself
 */
export function checkWritable(value: unknown, at: string, around: readonly unknown[] = []): void {
  if (typeof value === 'bigint') throw new TypeError(`${at}: expected what JSON can hold, got bigint`);
  if (typeof value !== 'object' || value === null) return;
  if (around.includes(value)) throw new TypeError(`${at}: expected what JSON can hold, got what it is part of`);
  // What writes itself, such as a date, is not looked into.
  if (isObject(value) && typeof value.toJSON === 'function') return;
  for (const [name, member] of Object.entries(value)) checkWritable(member, `${at}.${name}`, [...around, value]);
}
