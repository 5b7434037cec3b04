/** SHA-256, as text. */
import { type BinaryToTextEncoding, hash } from 'node:crypto';

/** @example sha256('a').length // 43 */
export function sha256(data: string | NodeJS.ArrayBufferView, encoding: BinaryToTextEncoding = 'base64url'): string {
  return hash('sha256', data, encoding);
}
