/** Seals `requestState`, which a client carries between two requests and can neither read, change nor use elsewhere. */

import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { sha256 } from '../kernel/sha256.ts';
import type { JsonValue } from '../protocol/json.ts';
import { digitsOf } from '../protocol/json-text.ts';
import { fromText, toText } from './serialize.ts';

/** The payload; or the reason why no key of this ring sealed the text for this scope. */
export type OpenedSeal =
  | { readonly ok: true; readonly payload: JsonValue }
  | { readonly ok: false; readonly why: 'misshapen' | 'unknown key' | 'does not verify' };

/** The version of the format, so that a later one can be distinguished. It is part of the authenticated data. */
const VERSION = 't1.';
/** The derived key opens nothing else that the same secret protects (RFC 5869 section 3.2). */
const PURPOSE = 'troupe requestState t1';
const FINGERPRINT_PURPOSE = 'troupe audit arguments t1';
const SHORTEST_SECRET = 32;
/** Maximum length of a sealed text, in characters. */
const LONGEST = 1_048_576;

const KEY_BYTES = 32;
const ID_BYTES = 6;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface Key {
  readonly id: Buffer;
  readonly secret: KeyObject;
}

/**
 * Seals and opens with AES-256-GCM. MCP 2026-07-28 basic/patterns/mrtr ("Server Requirements") treats `requestState` as an
 * attacker's input until it is verified. The payload and its reader must enforce expiry and single use.
 */
export class KeyRing {
  /** The keys by id in hexadecimal; the first one seals. */
  readonly #keys: ReadonlyMap<string, Key>;
  readonly #first: Key;
  /** The key of fingerprints, derived on first use. */
  #fingerprints: KeyObject | undefined;

  /**
   * @param keys secrets of at least 32 characters: the first seals, all open. To rotate, put the new one in front.
   * @throws {TypeError} if there is none, or one is not a string
   * @throws {RangeError} if one is too short
   * @example const ring = new KeyRing([process.env.STATE_KEY, process.env.OLD_STATE_KEY]);
   */
  constructor(keys: readonly string[]) {
    const made = keys.map(derived);
    const [first] = made;
    if (first === undefined)
      throw new TypeError('requestState keys: expected at least one secret, got none; KeyRing.random() makes one');
    this.#first = first;
    this.#keys = new Map(made.map((key) => [key.id.toString('hex'), key]));
  }

  /** Creates a ring of one random key. Other processes cannot open its seals, nor can this server after a restart. */
  static random(): KeyRing {
    return new KeyRing([KeyRing.randomSecret()]);
  }

  /** Creates a secret for a ring that is stored. */
  static randomSecret(): string {
    return randomBytes(KEY_BYTES).toString('base64url');
  }

  /**
   * @param payload returned by `open`; its length is visible from the text
   * @param bound the scope, such as principal, method, name and digest of the arguments. The text opens only with the same
   *   strings in the same order, and does not contain them
   *
   * @throws {RangeError} if the text would be longer than a mebibyte
   */
  seal(payload: JsonValue, bound: readonly string[]): string {
    const { id, secret } = this.#first;
    // Random, not counted, because several processes may share the key. Safe for 2^32 texts per key (NIST SP 800-38D section
    // 8.3).
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(additional(id, bound));
    const body = Buffer.concat([cipher.update(toText(payload), 'utf8'), cipher.final()]);
    const text = VERSION + Buffer.concat([id, nonce, body, cipher.getAuthTag()]).toString('base64url');
    if (text.length > LONGEST)
      throw new RangeError(
        `requestState: expected at most ${LONGEST} characters, got ${text.length}; store less in it, such as an id of data that is stored elsewhere`,
      );
    return text;
  }

  /**
   * Returns the HMAC-SHA-256 of a value in base64url, under a key of its own. Unlike a {@link digest}, it cannot be
   * compared with guessed values.
   */
  fingerprint(value: JsonValue): string {
    this.#fingerprints ??= createSecretKey(
      Buffer.from(hkdfSync('sha256', this.#first.secret, '', FINGERPRINT_PURPOSE, KEY_BYTES)),
    );
    return createHmac('sha256', this.#fingerprints).update(canonical(value)).digest('base64url');
  }

  /** Opens a text that a ring with one of these keys sealed for the same `bound`. Never throws. */
  open(text: string, bound: readonly string[]): OpenedSeal {
    const bytes = text.length <= LONGEST && text.startsWith(VERSION) ? decoded(text.slice(VERSION.length)) : undefined;
    if (bytes === undefined || bytes.length < ID_BYTES + NONCE_BYTES + TAG_BYTES)
      return { ok: false, why: 'misshapen' };
    const key = this.#keys.get(bytes.toString('hex', 0, ID_BYTES));
    if (key === undefined) return { ok: false, why: 'unknown key' };
    const nonce = bytes.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key.secret, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(additional(key.id, bound));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const body = decipher.update(bytes.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES));
      const payload = fromText(Buffer.concat([body, decipher.final()]).toString('utf8'), 'a sealed payload');
      return { ok: true, payload };
    } catch {
      // `final` throws if the tag is wrong. A verified text was written by `seal` and is JSON.
      return { ok: false, why: 'does not verify' };
    }
  }
}

/**
 * Returns the SHA-256 of a value in base64url. The order of members does not matter, because a client may reorder its
 * arguments when it retries.
 *
 * @example digest({ a: 1, b: 2 }) === digest({ b: 2, a: 1 }) // true
 */
export function digest(value: JsonValue): string {
  return sha256(canonical(value));
}

/**
 * Formats JSON without whitespace, with members sorted by UTF-16 code units (as in RFC 8785 section 3.2), and with the digits that
 * long numbers came with: two ids above 2^53 can be one number.
 */
function canonical(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  // Strings that grow cost half of what lists of parts do.
  let text = '';
  if (isList(value)) {
    for (const [index, item] of value.entries())
      text += `${index === 0 ? '' : ','}${canonicalElement(value, String(index), item)}`;
    return `[${text}]`;
  }
  for (const name of Object.keys(value).sort()) {
    const member = value[name];
    if (member === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${canonicalElement(value, name, member)}`;
  }
  return `{${text}}`;
}

function canonicalElement(container: object, key: string, element: JsonValue): string {
  return (typeof element === 'number' ? digitsOf(container, key, element) : undefined) ?? canonical(element);
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function derived(secret: unknown): Key {
  if (typeof secret !== 'string')
    throw new TypeError(`requestState keys: expected secrets as strings, got ${typeof secret}`);
  // Never include the secret, because errors are logged.
  if (secret.length < SHORTEST_SECRET)
    throw new RangeError(
      `requestState keys: expected at least ${SHORTEST_SECRET} characters, got ${secret.length}; use random ones, such as the output of \`openssl rand -base64 32\``,
    );
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES));
  return { id: createHash('sha256').update(bytes).digest().subarray(0, ID_BYTES), secret: createSecretKey(bytes) };
}

/** The additional authenticated data. Each string follows its length, so that adjacent strings cannot be confused. */
function additional(id: Buffer, bound: readonly string[]): Buffer {
  const parts: Buffer[] = [Buffer.from(VERSION), id];
  for (const each of bound) {
    // UTF-16, because UTF-8 maps all lone surrogates to the same bytes.
    const bytes = Buffer.from(each, 'utf16le');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    parts.push(length, bytes);
  }
  return Buffer.concat(parts);
}

/** Decodes base64url; `undefined` for any non-canonical encoding, which Node would accept. */
function decoded(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
