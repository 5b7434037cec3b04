/** Turns one text into one JSON value, and refuses what JSON allows but no two readers agree on: duplicate keys, `__proto__`, lone surrogates, endless nesting. */
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';

export interface ParseLimits {
  /** Deepest nesting of arrays and objects. */
  readonly maxDepth: number;
}

export type Parsed =
  | { readonly ok: true; readonly value: unknown }
  /** `value` is there when the text was JSON: the request's id may still be readable. */
  | { readonly ok: false; readonly error: ProtocolError; readonly value?: unknown };

/** Never throws. Linear in the length of the text. */
export function parseText(text: string, { maxDepth }: ParseLimits): Parsed {
  const shape = scan(text, maxDepth);
  if (shape.tooDeep) {
    // Not parsed at all: what is too deep for us would be too deep for whoever it is passed on to.
    return refused(ErrorCode.InvalidRequest, `nested deeper than ${maxDepth} levels (the server's option is maxDepth)`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return refused(
      ErrorCode.ParseError,
      `not valid JSON: ${error instanceof Error ? error.message.slice(0, 160) : 'unreadable'}`,
    );
  }
  const found = { keys: 0, forbidden: undefined };
  inspect(value, found);
  if (found.forbidden !== undefined)
    return {
      ...refused(
        ErrorCode.InvalidRequest,
        `the key ${found.forbidden} is refused: it can reach the prototype of every object`,
      ),
      value,
    };
  // JSON.parse keeps the last of two equal keys; other readers keep the first (CVE-2026-27896 and its kin).
  if (found.keys !== shape.keys)
    return { ...refused(ErrorCode.InvalidRequest, 'an object has the same key twice'), value };
  if (mayHideSurrogates(text) && !wellFormed(value)) {
    return {
      ...refused(ErrorCode.InvalidRequest, 'a string has half of a surrogate pair, which UTF-8 cannot carry'),
      value,
    };
  }
  return { ok: true, value };
}

function refused(
  code: typeof ErrorCode.InvalidRequest | typeof ErrorCode.ParseError,
  message: string,
): Extract<Parsed, { ok: false }> {
  return { ok: false, error: new ProtocolError(code, message) };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Counts the keys of a JSON text (the colons outside of strings), and sees whether it nests too deep, before anything is allocated for it. */
function scan(text: string, maxDepth: number): { readonly keys: number; readonly tooDeep: boolean } {
  let keys = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = endOfString(text, i);
    } else if (code === COLON) {
      keys += 1;
    } else if ((code | 0x20) === 0x7b) {
      // `{` or `[`
      depth += 1;
      if (depth > maxDepth) return { keys, tooDeep: true };
    } else if ((code | 0x20) === 0x7d) {
      depth -= 1;
    }
  }
  return { keys, tooDeep: false };
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

function inspect(value: unknown, found: { keys: number; forbidden: string | undefined }): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) inspect(item, found);
    return;
  }
  // Parsed from JSON, so every enumerable key is its own.
  for (const key in value) {
    found.keys += 1;
    const member: unknown = value[key as keyof typeof value];
    if (key === '__proto__') found.forbidden = '"__proto__"';
    else if (
      key === 'constructor' &&
      typeof member === 'object' &&
      member !== null &&
      Object.hasOwn(member, 'prototype')
    )
      found.forbidden = '"constructor.prototype"';
    if (typeof member === 'object') inspect(member, found);
  }
}

/** Half a pair can come in as an escape, or in a text that never was UTF-8 (an embedder's). */
function mayHideSurrogates(text: string): boolean {
  return /\\u[dD][89a-fA-F]/.test(text) || !text.isWellFormed();
}

function wellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(wellFormed);
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && wellFormed(member));
}
