/**
 * Parses one text into one JSON value. Rejects input that JSON allows but on which readers disagree: duplicate keys,
 * `__proto__`, lone surrogates, unlimited nesting.
 */

import { ErrorCode, ProtocolError } from '../../protocol/errors.ts';
import { HEAP_BYTES } from '../../protocol/heap.ts';
import { isWellFormed } from '../../protocol/json.ts';
import { isBeyond, keepNumbers } from '../../protocol/json-text.ts';
import { type RequestId, readIncoming } from '../../protocol/jsonrpc.ts';
import { envelopeText } from '../../protocol/message-envelope.ts';

export interface ParseLimits {
  /** Deepest nesting of arrays and objects. */
  readonly maxDepth: number;
}

/** Decides whether there is room for a message of so many bytes in memory. @returns the reason if there is none */
type MessageRoom = (bytes: number) => string | undefined;

type Parsed =
  /** `bytes`: approximate memory of the value. */
  | { readonly ok: true; readonly value: unknown; readonly bytes: number }
  /**
   * `value` is present if the text was JSON, or, for a text that nests too deeply, the result of {@link
   * messageEnvelopeOf}: it may contain an id.
   */
  | { readonly ok: false; readonly error: ProtocolError; readonly value?: unknown };

/** Texts up to this length are parsed before they are measured: their values use little memory, however they nest. */
const SHORT = 16_384;

/**
 * Never throws. Linear in the length of the text.
 *
 * @param room checked with a lower bound before a long text is parsed: a rejected message then costs a twentieth of its
 *   processing and leaves nothing to the garbage collector
 */
export function parseText(text: string, { maxDepth }: ParseLimits, room?: MessageRoom): Parsed {
  const depth = () => ({
    ...refused(ErrorCode.InvalidRequest, `nested deeper than ${maxDepth} levels (the server's option is maxDepth)`),
    value: messageEnvelopeOf(text),
  });
  if (text.length > SHORT) {
    const { tooDeep, bytes } = scan(text, maxDepth);
    if (tooDeep) return depth();
    const full = room?.(bytes);
    if (full !== undefined) return { ...refused(ErrorCode.Overloaded, full), value: messageEnvelopeOf(text) };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, 160) : 'unreadable';
    return refused(ErrorCode.ParseError, `not valid JSON: ${why}`);
  }
  const found: Found = { keys: 0, bytes: text.length, forbidden: undefined, tooDeep: false, large: false };
  inspect(value, maxDepth, found);
  if (found.tooDeep) return depth();
  // A text has at least one colon for each key: if the numbers are equal, no key is duplicated.
  const written = colons(text) === found.keys ? found : scan(text, maxDepth);
  // A dropped duplicate may nest too deeply, too; its keys were then not all counted.
  if (written.tooDeep) return depth();
  if (found.forbidden !== undefined) {
    const why = `the key ${found.forbidden} is rejected: it can reach the prototype of every object`;
    return { ...refused(ErrorCode.InvalidRequest, why), value };
  }
  // JSON.parse keeps the last of two equal keys; other readers keep the first (CVE-2026-27896 and similar).
  if (written.keys !== found.keys) {
    return { ...refused(ErrorCode.InvalidRequest, 'an object has the same key twice'), value };
  }
  if (mayHideSurrogates(text) && !isWellFormed(value)) {
    const why = 'a string has half of a surrogate pair, which UTF-8 cannot carry';
    return { ...refused(ErrorCode.InvalidRequest, why), value };
  }
  const digits = found.large ? keepNumbers(text, value) : 0;
  return { ok: true, value, bytes: found.bytes + digits };
}

/**
 * Reads the envelope of a message without parsing the text: its id and method, or a list of these for a batch;
 * undefined if the text is not readable.
 */
export function messageEnvelopeOf(text: string): unknown {
  const members = envelopeText(text);
  return members === '' ? undefined : JSON.parse(members);
}

/** The id of the request in a text, which may be incomplete; undefined for other texts. */
export function idIn(text: string): RequestId | undefined {
  const value = messageEnvelopeOf(text);
  const incoming = value === undefined ? undefined : readIncoming(value);
  return incoming?.kind === 'request' ? incoming.id : undefined;
}

function refused(
  code: typeof ErrorCode.InvalidRequest | typeof ErrorCode.ParseError | typeof ErrorCode.Overloaded,
  message: string,
): Extract<Parsed, { ok: false }> {
  return { ok: false, error: new ProtocolError(code, message) };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OBJECT = 0x7b;

interface Scanned {
  readonly keys: number;
  readonly tooDeep: boolean;
  /** As {@link Found.bytes}: a lower bound, nearly exact. */
  readonly bytes: number;
}

/**
 * Counts the keys of a JSON text (colons outside of strings) and the memory of its value, and detects excessive nesting,
 * before anything is allocated for it.
 */
function scan(text: string, maxDepth: number): Scanned {
  let keys = 0;
  let bytes = text.length;
  let commas = 0;
  let objects = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = endOfString(text, i);
    } else if (code === COLON) {
      keys += 1;
    } else if (code === COMMA) {
      commas += 1;
    } else if ((code | 0x20) === 0x7b) {
      // `{` or `[`
      bytes += code === OBJECT ? HEAP_BYTES.object : HEAP_BYTES.array;
      // Not `}` and not a space: the object has a key.
      if (code === OBJECT && text.charCodeAt(i + 1) === QUOTE) objects += 1;
      depth += 1;
      if (depth > maxDepth) return { keys, tooDeep: true, bytes };
    } else if ((code | 0x20) === 0x7d) {
      depth -= 1;
    }
  }
  // An object has one comma less than keys; all other commas separate the items of lists.
  const items = Math.max(0, commas - keys + objects);
  return { keys, tooDeep: false, bytes: bytes + keys * HEAP_BYTES.key + items * HEAP_BYTES.item };
}

/** The index of the quote that closes the string opened at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = end;
    while (text.charCodeAt(slashes - 1) === BACKSLASH) slashes -= 1;
    if ((end - slashes) % 2 === 0) return end;
  }
  return text.length;
}

interface Found {
  keys: number;
  /** As {@link heapBytes} counts, with the length of the text in place of the lengths of its strings and numbers. */
  bytes: number;
  forbidden: string | undefined;
  tooDeep: boolean;
  /** There is a number beyond 2^53. */
  large: boolean;
}

/** Counts the keys of a parsed value and detects forbidden contents. */
function inspect(value: unknown, room: number, found: Found): void {
  if (typeof value !== 'object' || value === null) return;
  if (room === 0) {
    found.tooDeep = true;
    return;
  }
  if (Array.isArray(value)) {
    found.bytes += HEAP_BYTES.array + HEAP_BYTES.item * value.length;
    for (const item of value)
      if (typeof item === 'object') inspect(item, room - 1, found);
      else if (typeof item === 'number' && isBeyond(item)) found.large = true;
    return;
  }
  found.bytes += HEAP_BYTES.object;
  // Parsed from JSON, so every enumerable key is its own.
  for (const key in value) {
    found.keys += 1;
    found.bytes += HEAP_BYTES.key;
    const member: unknown = value[key as keyof typeof value];
    if (key === '__proto__') found.forbidden = '"__proto__"';
    if (typeof member === 'number' && isBeyond(member)) found.large = true;
    if (typeof member !== 'object' || member === null) continue;
    if (key === 'constructor' && Object.hasOwn(member, 'prototype')) found.forbidden = '"constructor.prototype"';
    inspect(member, room - 1, found);
  }
}

function colons(text: string): number {
  let count = 0;
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) count += 1;
  return count;
}

/** Half of a pair can come from an escape, or from a text that never was UTF-8 (an embedder's). */
function mayHideSurrogates(text: string): boolean {
  return (text.includes('\\u') && /\\u[dD][89a-fA-F]/.test(text)) || !text.isWellFormed();
}
