/** The sealed `requestState`: what a client carries for us between two requests, and can neither read, change nor use elsewhere. */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { isObject, type JsonValue } from '../protocol/json.ts';

/** What was sealed; or why the text is none that a key of this ring has sealed for this place. */
export type OpenedSeal =
  | { readonly ok: true; readonly payload: JsonValue }
  | { readonly ok: false; readonly why: 'misshapen' | 'unknown key' | 'does not verify' };

/** Names the format, and lets a later one be told apart. It is part of what the seal protects. */
const VERSION = 't1.';
/** A key that is derived for this purpose opens nothing else that the same secret protects (RFC 5869 section 3.2). */
const PURPOSE = 'troupe requestState t1';
const SHORTEST_SECRET = 32;
/** Longest text that is sealed or opened, in characters. */
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
 * Seals and opens by AES-256-GCM. MCP 2026-07-28 basic/patterns/mrtr ("Server Requirements") takes `requestState` for an attacker's
 * input until it is verified. That a state is used only once, and for how long, is for its payload and its reader to say.
 */
export class KeyRing {
  /** By id, in hexadecimal; the first seals. */
  readonly #keys: ReadonlyMap<string, Key>;
  readonly #first: Key;

  /**
   * @param keys secrets of at least 32 characters: the first seals, all open, so that a new one is put in front of the old
   * @throws {TypeError} where there is none, or one is no string
   * @throws {RangeError} where one is too short
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

  /** A ring of one random key: what it seals cannot be opened by another process, nor after a restart. */
  static random(): KeyRing {
    return new KeyRing([KeyRing.randomSecret()]);
  }

  /** A secret to make a ring of, for whoever can keep it. */
  static randomSecret(): string {
    return randomBytes(KEY_BYTES).toString('base64url');
  }

  /**
   * @param payload comes back from `open`; its length can be told from the text
   * @param bound what the text may be used for, such as principal, method, name and digest of the arguments: it opens with the same
   *   strings in the same order only, and does not contain them
   * @throws {RangeError} where the text would be longer than a mebibyte
   */
  seal(payload: JsonValue, bound: readonly string[]): string {
    const { id, secret } = this.#first;
    // Random, not counted: several processes may share the key. Safe for 2^32 texts of one key (NIST SP 800-38D section 8.3).
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(additional(id, bound));
    const body = Buffer.concat([cipher.update(JSON.stringify(payload), 'utf8'), cipher.final()]);
    const text = VERSION + Buffer.concat([id, nonce, body, cipher.getAuthTag()]).toString('base64url');
    if (text.length > LONGEST)
      throw new RangeError(
        `requestState: expected at most ${LONGEST} characters, got ${text.length}; keep less in it, such as a name under which the rest is stored`,
      );
    return text;
  }

  /** Opens what a ring with one of these keys has sealed for the same `bound`. Never throws, whatever the text is. */
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
      const payload: JsonValue = JSON.parse(Buffer.concat([body, decipher.final()]).toString('utf8'));
      return { ok: true, payload };
    } catch {
      // `final` throws where the tag does not fit. What verifies was written by `seal`, and is JSON.
      return { ok: false, why: 'does not verify' };
    }
  }
}

/**
 * SHA-256 of a value, in base64url. Members count in any order: a client may write its arguments anew when it comes again.
 *
 * @example digest({ a: 1, b: 2 }) === digest({ b: 2, a: 1 }) // true
 */
export function digest(value: JsonValue): string {
  return createHash('sha256').update(canonical(value)).digest('base64url');
}

/** JSON without blanks, members by name in the order of their UTF-16 code units (as in RFC 8785 section 3.2). */
function canonical(value: JsonValue): string {
  if (isList(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const member = value[name];
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${canonical(member)}`);
  }
  return `{${members.join()}}`;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function derived(secret: unknown): Key {
  if (typeof secret !== 'string')
    throw new TypeError(`requestState keys: expected secrets as strings, got ${typeof secret}`);
  // Never shows the secret: an error goes into logs.
  if (secret.length < SHORTEST_SECRET)
    throw new RangeError(
      `requestState keys: expected at least ${SHORTEST_SECRET} characters, got ${secret.length}; take random ones, such as \`openssl rand -base64 32\` gives`,
    );
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES));
  return { id: createHash('sha256').update(bytes).digest().subarray(0, ID_BYTES), secret: createSecretKey(bytes) };
}

/** What the seal protects besides the payload. Each string stands after its length, so that none can reach into its neighbour. */
function additional(id: Buffer, bound: readonly string[]): Buffer {
  const parts: Buffer[] = [Buffer.from(VERSION), id];
  for (const each of bound) {
    // UTF-16, because UTF-8 makes one of all lone surrogates.
    const bytes = Buffer.from(each, 'utf16le');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    parts.push(length, bytes);
  }
  return Buffer.concat(parts);
}

/** The bytes of a base64url text; `undefined` for any other spelling of them, which Node would read as well. */
function decoded(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
