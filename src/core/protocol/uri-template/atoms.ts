/**
 * A URI as atoms: one per decoded character, so that no boundary can fall inside a percent-escape or a surrogate pair.
 */
import { decoded } from './grammar.ts';

/** Added to the code point of a percent-encoded reserved character: `%2F` is not `/` (RFC 3986 section 2.2). */
const ENCODED = 0x200000;
/** Terminates the code points, so that reading one past the last is never out of bounds. */
const END = -1;

/**
 * Maximum length of a URI that can match, in UTF-16 code units: slightly more than the 8,000 octets that RFC 9110
 * section 4.1 recommends. Matching takes time proportional to expressions times characters, so this limits the worst
 * case to milliseconds.
 */
export const MAX_URI_LENGTH = 8192;

/** One number per position in a URI, before each atom and after the last; 0 if the position is not marked. */
export type Marks = Uint16Array<ArrayBuffer>;

export interface Atoms {
  readonly text: string;
  /** Number of atoms. */
  readonly length: number;
  /** The code point of each atom, then `END`. */
  readonly codes: Int32Array;
  /** The start of each atom in `text`, then the end of the text. */
  readonly offsets: Int32Array;
}

const reserved = new Uint8Array(128);
for (const character of ":/?#[]@!$&'()*+,;=") reserved[character.charCodeAt(0)] = 1;

/** Splits text into atoms; `undefined` if an escape is malformed or not UTF-8, or if a surrogate stands alone. */
export function readAtoms(text: string): Atoms | undefined {
  if (decoded(text) === undefined) return undefined;
  const codes = new Int32Array(text.length + 1);
  const offsets = new Int32Array(text.length + 1);
  let length = 0;
  for (let at = 0; at < text.length; length += 1) {
    offsets[length] = at;
    const code = text.codePointAt(at) ?? END;
    if (code >= 0xd800 && code <= 0xdfff) return undefined;
    if (code === 0x25) {
      const width = escapeWidth(text, at);
      const meant = codePoint(text, at, width);
      codes[length] = reserved[meant] === 1 ? meant + ENCODED : meant;
      at += 3 * width;
    } else {
      codes[length] = code;
      at += code > 0xffff ? 2 : 1;
    }
  }
  offsets[length] = text.length;
  codes[length] = END;
  return { text, length, codes, offsets };
}

/** The number of escapes that encode the character at this position. The text is valid UTF-8. */
function escapeWidth(text: string, at: number): number {
  const first = byte(text, at);
  if (first < 0x80) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

function codePoint(text: string, at: number, width: number): number {
  if (width === 1) return byte(text, at);
  let code = byte(text, at) & (0x7f >> width);
  for (let next = 1; next < width; next += 1) code = code * 64 + (byte(text, at + 3 * next) & 0x3f);
  return code;
}

function byte(text: string, at: number): number {
  return hex(text.charCodeAt(at + 1)) * 16 + hex(text.charCodeAt(at + 2));
}

function hex(unit: number): number {
  return unit <= 0x39 ? unit - 0x30 : (unit | 0x20) - 0x57;
}

/** The decoded text of the atoms from `start` up to `end`. */
export function atomsText(atoms: Atoms, start: number, end: number): string {
  const slice = atoms.text.slice(atoms.offsets[start], atoms.offsets[end]);
  return decoded(slice) ?? slice;
}

/** True if an atom may be part of a variable's name: no raw reserved character, and not `-` or `~`. */
export function isNameAtom(code: number | undefined): boolean {
  return code !== undefined && code !== END && code !== 0x2d && code !== 0x7e && reserved[code] !== 1;
}

/** Literal text of a template, prepared for searching. */
export interface Literal {
  readonly codes: Int32Array;
  readonly length: number;
  /** For each prefix, the length of its longest border (Knuth, Morris and Pratt). */
  readonly borders: Int32Array;
}

/** Prepares literal text that the grammar has checked. */
export function literalOf(text: string): Literal {
  const { codes = new Int32Array(1), length = 0 } = readAtoms(text) ?? {};
  const borders = new Int32Array(length + 1);
  for (let at = 1, border = 0; at < length; at += 1) {
    while (border > 0 && codes[at] !== codes[border]) border = borders[border] ?? 0;
    if (codes[at] === codes[border]) border += 1;
    borders[at + 1] = border;
  }
  return { codes, length, borders };
}

/** True where the URI starts with the literal. */
export function leads(literal: Literal, atoms: Atoms): boolean {
  for (let at = 0; at < literal.length; at += 1) {
    if (literal.codes[at] !== atoms.codes[at]) return false;
  }
  return true;
}

/**
 * Marks the positions, from `from` on, at which the literal can start so that the text after it starts at a marked
 * position; `undefined` if there are none. One pass with a border table: `indexOf` can take length times length for a
 * literal like `aaaa…b`.
 */
export function startsBefore(literal: Literal, atoms: Atoms, from: number, marked: Marks): Marks | undefined {
  if (literal.length === 0) return marked;
  const { codes, borders, length } = literal;
  const starts = new Uint16Array(atoms.length + 1);
  let met = 0;
  let some = false;
  for (let at = from; at < atoms.length; at += 1) {
    const code = atoms.codes[at];
    while (met > 0 && codes[met] !== code) met = borders[met] ?? 0;
    if (codes[met] === code) met += 1;
    if (met !== length || marked[at + 1] === 0) continue;
    starts[at + 1 - met] = 1;
    some = true;
  }
  return some ? starts : undefined;
}
