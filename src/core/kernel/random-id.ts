/** Random ids, which cannot be guessed. */
import { randomBytes } from 'node:crypto';

/**
 * Returns a random text of letters, digits, `-` and `_`. Each character has 6 random bits. It never begins with `-`, by which a
 * command would take it for an option.
 *
 * @param length characters; at least 21 for an id that must never occur twice
 * @example randomId() // 'V1StGXR8_Z5jdHi6B-myT'
 */
export function randomId(length = 21): string {
  const id = randomBytes(Math.ceil((length * 3) / 4))
    .toString('base64url')
    .slice(0, length);
  return id.startsWith('-') ? `_${id.slice(1)}` : id;
}
