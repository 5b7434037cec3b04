/**
 * Keeps the text of whole numbers that a JavaScript number cannot hold, such as ids above 2^53. A program reads the nearest number,
 * as `JSON.parse` gives it. A value that is passed on unchanged is written with the digits that came (RFC 8259 section 6 leaves the
 * precision to the reader).
 */

/** For the objects and arrays that contain such numbers: their texts, by key or index. Forgotten with the object. */
const texts = new WeakMap<object, Map<string, string>>();
/** A number was remembered in this process: until then, no text is searched for one. */
let any = false;

/** 2^53 has 16 digits. */
const LARGE = /^-?[1-9]\d{15,}$/;
/** As `JSON.stringify` writes such numbers: from 10^21 with an exponent. */
const WRITTEN = /\d{16}|\de\+/;
/** Most numbers of one text that are remembered: a longer list of them would cost more time than reading it. */
const MAX_NUMBERS = 10_000;

/** Begins a number in the place of a string, until its quotes are removed. A value with such a text is written without digits. */
const MARK = '\uE000troupe-number:';
const MARKED = /"\uE000troupe-number:(-?\d+)"/g;

/** Remembers a number that is an element of a container. Does nothing for one that is exact. */
export function keepNumber(container: object, key: string, text: string): void {
  if (!LARGE.test(text) || String(Number(text)) === text) return;
  any = true;
  const known = texts.get(container);
  if (known) known.set(key, text);
  else texts.set(container, new Map([[key, text]]));
}

/** A container around the present place of a text. */
interface Level {
  readonly at: unknown;
  readonly list: boolean;
  /** The key or index of the next element. */
  key: string;
  index: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * Remembers the numbers of a value that `JSON.parse` has made of a text. Linear in the length of the text; never throws.
 *
 * @param text JSON without duplicate keys
 */
export function keepNumbers(text: string, value: unknown): void {
  const open: Level[] = [];
  let next: unknown = value;
  /** A string is a key. */
  let isKey = false;
  let kept = 0;
  for (let at = 0; at < text.length && kept < MAX_NUMBERS; at += 1) {
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
      open.push({ at: next, list, key: '0', index: 0 });
      isKey = !list;
    } else if (code === 0x7d || code === 0x5d) open.pop();
    else if (code === COMMA && inside) {
      inside.index += 1;
      if (inside.list) inside.key = String(inside.index);
      isKey = !inside.list;
    } else if (code === COLON) isKey = false;
    else if (inside && (code === 0x2d || (code >= 0x30 && code <= 0x39))) {
      const end = endOfNumber(text, at);
      if (end - at >= 16 && typeof inside.at === 'object' && inside.at !== null) {
        keepNumber(inside.at, inside.key, text.slice(at, end));
        kept += 1;
      }
      at = end - 1;
    }
  }
}

function memberOf({ at, key }: Level): unknown {
  return typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined;
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

/** @returns the index after the last character of a number */
function endOfNumber(text: string, begin: number): number {
  let end = begin + 1;
  while (end < text.length && '0123456789.eE+-'.includes(text.charAt(end))) end += 1;
  return end;
}

/** Remembers the numbers of a container for its copy. */
export function copyNumbers(from: object, to: object): void {
  const known = texts.get(from);
  if (known) texts.set(to, new Map(known));
}

/** True if a text that `JSON.stringify` has written may contain a number whose digits were remembered. */
export function mayHaveKept(text: string): boolean {
  return any && WRITTEN.test(text);
}

/** `JSON.stringify` with the digits of the numbers that were remembered and not changed since. */
export function stringifyKept(value: unknown, indent: number | undefined): string {
  let kept = false;
  let forged = false;
  const text = JSON.stringify(
    value,
    function (this: unknown, key: string, member: unknown) {
      forged ||= key.startsWith(MARK) || (typeof member === 'string' && member.startsWith(MARK));
      if (typeof member !== 'number' || typeof this !== 'object' || this === null) return member;
      const digits = texts.get(this)?.get(key);
      if (digits === undefined || Number(digits) !== member) return member;
      kept = true;
      return `${MARK}${digits}`;
    },
    indent,
  );
  if (forged) return JSON.stringify(value, undefined, indent);
  return kept ? text.replace(MARKED, '$1') : text;
}
