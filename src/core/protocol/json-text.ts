/**
 * Reads and writes JSON so that every reader accepts its strings, and numbers keep their digits: keeps the text of numbers that a JavaScript number cannot hold, such as ids above 2^53. A program reads the nearest number,
 * as `JSON.parse` gives it. A value that is passed on unchanged is written with the digits that came (RFC 8259 section 6 leaves the
 * precision to the reader).
 */

import { HEAP_BYTES } from './heap.ts';

/** For the objects and arrays that contain such numbers: their texts, by key or index. Forgotten with the object. */
const texts = new WeakMap<object, Map<string, string>>();
/** A number was remembered in this process: until then, no text is searched for one. */
let any = false;

/** A number of them was infinite, which `JSON.stringify` writes as `null`. */
let anyInfinite = false;

/** A text may have such a number: 16 digits after a delimiter, or an exponent. */
const READ = /[[:,\s]-?\d(?:[\d.]{15}|[\d.]*[eE])/;
/** `JSON.stringify` writes such a number with at least so many digits, or, from 10^21, with an exponent. */
const MIN_DIGITS = 16;

/** A whole pair, half of one (6 characters), or any other escape. `\\ud83d` in JSON is a backslash and five letters. */
const ESCAPE = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/gs;

/** Begins a number in the place of a string, until its quotes are removed. It is random, so that no value contains it. */
let mark: string | undefined;

/**
 * Remembers a number that is an element of a container, if it is beyond 2^53 and JavaScript would write it differently.
 *
 * @param text the number as JSON
 * @returns the bytes of memory that this takes
 */
export function keepNumber(container: object, key: string, text: string): number {
  const nearest = Number(text);
  if (!isBeyond(nearest) || String(nearest) === text) return 0;
  any = true;
  anyInfinite ||= !Number.isFinite(nearest);
  // A slice of a message would retain all of it. A slice of a concatenation retains the concatenation: its text was copied.
  const digits = `${text} `.slice(0, -1);
  const known = texts.get(container);
  if (known) known.set(key, digits);
  else texts.set(container, new Map([[key, digits]]));
  return HEAP_BYTES.digits + (known ? 0 : HEAP_BYTES.map);
}

/** True for a number that may stand for several integers. */
export function isBeyond(value: number): boolean {
  return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER;
}

/** A container around the present place of a text. */
interface Level {
  readonly at: unknown;
  readonly list: boolean;
  /** The key of the next element of an object. */
  key: string;
  /** The index of the next element of a list. */
  index: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;

/**
 * Remembers the numbers of a value that `JSON.parse` has made of a text. Linear in the length of the text; never throws.
 *
 * @param text JSON without duplicate keys
 * @returns the bytes of memory that this takes
 */
export function keepNumbers(text: string, value: unknown): number {
  const open: Level[] = [];
  let next: unknown = value;
  /** A string is a key. */
  let isKey = false;
  let bytes = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const inside = open.at(-1);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (isKey && inside) {
        const raw = text.slice(at, end + 1);
        inside.key = raw.includes('\\') ? String(JSON.parse(raw)) : raw.slice(1, -1);
        isKey = false;
      }
      at = end;
    } else if (code === 0x7b || code === 0x5b) {
      const list = code === 0x5b;
      next = inside ? memberOf(inside) : value;
      open.push({ at: next, list, key: '', index: 0 });
      isKey = !list;
    } else if (code === 0x7d || code === 0x5d) open.pop();
    else if (code === COMMA && inside) {
      inside.index += 1;
      isKey = !inside.list;
    } else if (code === COLON) isKey = false;
    else if (inside && (code === MINUS || isDigit(text, at))) {
      const begin = at;
      let exponent = false;
      for (; at + 1 < text.length && isOfNumber(text.charCodeAt(at + 1)); at += 1)
        exponent ||= (text.charCodeAt(at + 1) | 0x20) === 0x65;
      const { at: container } = inside;
      // A shorter number is an integer below 2^53, or a fraction.
      if ((exponent || at + 1 - begin >= MIN_DIGITS) && typeof container === 'object' && container !== null)
        bytes += keepNumber(container, keyOf(inside), text.slice(begin, at + 1));
    }
  }
  return bytes;
}

function memberOf({ at, list, key, index }: Level): unknown {
  if (typeof at !== 'object' || at === null) return undefined;
  return list && Array.isArray(at) ? at[index] : Reflect.get(at, key);
}

function keyOf({ list, key, index }: Level): string {
  return list ? String(index) : key;
}

/** @returns the index of the closing quote */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

/** True for a digit, a point, a sign, or the letter of an exponent. */
function isOfNumber(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2e || code === MINUS || code === 0x2b || (code | 0x20) === 0x65;
}

/** Remembers the numbers of a container for its shallow copy. @returns the copy */
export function copyNumbers<T extends object>(from: object, to: T): T {
  const known = any ? texts.get(from) : undefined;
  if (known) texts.set(to, new Map([...(texts.get(to) ?? []), ...known]));
  return to;
}

/** Remembers the numbers of all containers of a value for its deep copy. */
export function copyAllNumbers(from: unknown, to: unknown, seen = new Set<unknown>()): void {
  if (!any || seen.has(from)) return;
  if (typeof from !== 'object' || from === null || typeof to !== 'object' || to === null) return;
  seen.add(from);
  copyNumbers(from, to);
  // Of a list of a million numbers, entries would cost a second.
  if (Array.isArray(from)) {
    for (let index = 0; index < from.length; index += 1)
      if (typeof from[index] === 'object') copyAllNumbers(from[index], Reflect.get(to, index), seen);
  } else
    for (const [key, member] of Object.entries(from))
      if (typeof member === 'object') copyAllNumbers(member, Reflect.get(to, key), seen);
}

/** The digits of a number that is an element of a container; undefined if JavaScript writes them itself. */
export function digitsOf(container: object, key: string, member: number): string | undefined {
  const digits = any ? texts.get(container)?.get(key) : undefined;
  return digits !== undefined && Number(digits) === member ? digits : undefined;
}

/** `JSON.parse`, which remembers the numbers. @throws {SyntaxError} for a text that is not JSON */
export function readExact(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (READ.test(text)) keepNumbers(text, value);
  return value;
}

/** `JSON.stringify` with the digits of the numbers that were remembered and not changed since; undefined for a function, too. */
export function writeExact(value: unknown, indent?: number): string {
  const plain = JSON.stringify(value, undefined, indent);
  if (!any || !mayBeKept(plain)) return plain;
  let kept = false;
  // Made with the first such number: Node loads all of Web Crypto for it.
  mark ??= `number-${crypto.randomUUID()}:`;
  const before = mark;
  const text = JSON.stringify(
    value,
    function (this: unknown, key: string, member: unknown) {
      if (typeof member !== 'number' || typeof this !== 'object' || this === null) return member;
      const digits = digitsOf(this, key, member);
      if (digits === undefined) return member;
      kept = true;
      return before + digits;
    },
    indent,
  );
  return kept ? text.replace(new RegExp(`"${before}([^"]+)"`, 'g'), '$1') : plain;
}

/** True for a text that `JSON.stringify` wrote, or `undefined`, if it may contain a number that is remembered. */
function mayBeKept(text: string | undefined): boolean {
  if (text === undefined) return false;
  // A run of so many digits has one at a place that is looked at.
  for (let at = MIN_DIGITS - 1; at < text.length; at += MIN_DIGITS) {
    if (!isDigit(text, at)) continue;
    let begin = at;
    while (isDigit(text, begin - 1)) begin -= 1;
    while (isDigit(text, at + 1)) at += 1;
    if (at - begin + 1 >= MIN_DIGITS) return true;
  }
  // An `e` is in almost each word, and a plus is rare: to look for it first takes a third of the time.
  return (text.includes('+') && text.includes('e+')) || (anyInfinite && text.includes('null'));
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

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
