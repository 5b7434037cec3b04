/** The keys of instances: their origins, their one spelling, and the handle of each. Pure. */
import { sha256 } from '../../core/kernel/sha256.ts';
import { CELLS, RANDOM_LENGTH, withCell } from '../../core/protocol/cell.ts';
import { describe, isWellFormed } from '../../core/protocol/json.ts';

/** The origin of the key of an instance: the caller's principal, its tenant, its session, or an argument of the call. */
export type KeyedBy = 'principal' | 'tenant' | 'session' | 'argument';

/** Longest key, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 256;

/** Control characters, line breaks, and characters that reverse the text around them. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

/**
 * Returns the handle of the instance of a key: the same at every node and after every restart, also if a cluster gets another
 * secret. It is no secret, because it follows from the key.
 *
 * @param key of a key by argument, as {@link canonicalKey} returns it
 * @example handleOfKey('room', 'argument', 'lobby').length // 24
 */
export function handleOfKey(machine: string, kind: KeyedBy, key: string): string {
  const hash = Buffer.from(sha256(`${machine}\n${kind}\n${key}`, 'hex'), 'hex');
  return withCell(hash.readUInt16BE(hash.length - 2) % CELLS, hash.toString('base64url').slice(0, RANDOM_LENGTH));
}

/**
 * Returns the one spelling of a key that a client or a program gives: its Unicode normal form C.
 *
 * @throws {TypeError} for anything but 1 to 256 bytes of text without control characters and without white space at its ends
 * @example canonicalKey('cafe\u0301') // 'café'
 */
export function canonicalKey(text: unknown): string {
  const problem = problemOfKey(text);
  if (problem !== undefined) throw new TypeError(problem);
  return String(text).normalize('NFC');
}

/** Says what is wrong with a key; undefined for a valid one. */
export function problemOfKey(text: unknown): string | undefined {
  if (typeof text !== 'string' || text === '')
    return `expected a key of 1 to ${MAX_KEY_BYTES} bytes, got ${describe(text)}`;
  const bytes = text.length > MAX_KEY_BYTES ? text.length : Buffer.byteLength(text.normalize('NFC'));
  if (bytes > MAX_KEY_BYTES) return `expected a key of 1 to ${MAX_KEY_BYTES} bytes, got ${bytes}`;
  if (!isWellFormed(text) || UNPRINTABLE.test(text)) return 'expected a key without control characters, got one';
  return text.trim() === text ? undefined : 'expected a key without white space at its ends, got some';
}
