/** Writes and repairs JSON so that every reader accepts its strings, and numbers keep their digits. */
import { writeExact } from './exact-numbers.ts';

/** A whole pair, half of one (6 characters), or any other escape. `\\ud83d` in JSON is a backslash and five letters. */
const ESCAPE = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/gs;

/**
 * `JSON.stringify` with the digits that a long number came with, and with U+FFFD in place of each half of a surrogate pair, as
 * `toWellFormed` does. A text that was cut inside of an emoji has one, and many readers reject the whole message for it: RFC 8259
 * section 8.2 leaves its meaning open.
 */
export function writeJson(value: unknown, indent?: number): string {
  const text: string | undefined = writeExact(value, indent);
  // `JSON.stringify` writes a half as an escape in lower case. A value such as a function has no text.
  return text?.includes('\\ud') ? withoutHalves(text) : text;
}

/** JSON with U+FFFD in place of each half of a surrogate pair, as an escape or as it is. */
export function withoutHalves(text: string): string {
  return text.toWellFormed().replace(ESCAPE, (found) => (found.length === 6 ? '\uFFFD' : found));
}
