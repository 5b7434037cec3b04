/** Parses JSON that people edit: with comments and trailing commas, and with the line of each member for messages. */

import type { JsonObject, JsonValue } from '../protocol/json.ts';
import { keepNumber, writeExact } from '../protocol/json-text.ts';

/** Deepest nesting. */
const MAX_DEPTH = 64;

export interface CommentedJson {
  readonly value: JsonValue;
  /** The line of a member of an object, or of an item of a list, from 1; undefined if the value has no such member. */
  lineOf(container: object, member: string): number | undefined;
  /** The places of an object and its members in the text. */
  placeOf(object: JsonObject): ObjectPlace | undefined;
}

/** Places are in UTF-16 code units, from 0; the end of a value is the place after its last character. */
export interface ObjectPlace {
  readonly open: number;
  readonly close: number;
  /** In the order of the text. */
  readonly members: ReadonlyMap<string, MemberPlace>;
}

export interface MemberPlace {
  readonly start: number;
  readonly value: number;
  readonly end: number;
  /** The comma after the member. */
  readonly comma: number | undefined;
}

/** The text is not JSON, or readers of it could disagree. */
export class CommentedJsonError extends Error {
  override readonly name = 'CommentedJsonError';
  /** From 1. */
  readonly line: number;
  /** In UTF-16 code units, from 1. */
  readonly column: number;

  constructor(message: string, line: number, column: number) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

/**
 * Parses a text as VS Code reads its configuration: `//` and block comments, and a comma before a closing bracket.
 *
 * @param repeated called with the path and the line of each member that its object has already; the last one counts. Without it, such a
 *   member is an error
 * @throws {CommentedJsonError} with the first problem and its place; also for `__proto__`
 * @example readCommentedJson('{ "a": 1, } // one').value // { a: 1 }
 */
export function readCommentedJson(
  text: string,
  repeated?: (path: readonly string[], line: number) => void,
): CommentedJson {
  const lines = new WeakMap<object, Map<string, number>>();
  const places = new WeakMap<object, ObjectPlace>();
  const value = new Parser(text, lines, places, repeated).document();
  return {
    value,
    lineOf: (container, member) => lines.get(container)?.get(member),
    placeOf: (object) => places.get(object),
  };
}

const SPACE = /(?:[ \t\r\n]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
// JSON allows U+007F and the controls above it (RFC 8259 section 7).
const STRING = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z_$][\w$]*/y;
const WORDS: Readonly<Record<string, JsonValue>> = { true: true, false: false, null: null };
const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

class Parser {
  readonly #text: string;
  readonly #lines: WeakMap<object, Map<string, number>>;
  readonly #places: WeakMap<object, ObjectPlace>;
  readonly #repeated: ((path: readonly string[], line: number) => void) | undefined;
  /** The members that lead to the present value. */
  readonly #path: string[] = [];
  #at = 0;
  /** The text of the last number. */
  #number = '';
  /** A place whose line is known: lines are counted once, because members come in order. */
  #counted = { at: 0, line: 1 };

  constructor(
    text: string,
    lines: WeakMap<object, Map<string, number>>,
    places: WeakMap<object, ObjectPlace>,
    repeated?: (path: readonly string[], line: number) => void,
  ) {
    this.#text = text;
    this.#repeated = repeated;
    this.#lines = lines;
    this.#places = places;
  }

  document(): JsonValue {
    if (this.#text.startsWith('\ufeff')) this.#at = 1;
    const value = this.#value(0);
    if (this.#next() !== '') throw this.#error('expected the end of the text');
    return value;
  }

  #value(depth: number): JsonValue {
    const next = this.#next();
    if (depth >= MAX_DEPTH && (next === '{' || next === '['))
      throw this.#error(`nested deeper than ${MAX_DEPTH} levels`);
    if (next === '{') return this.#object(depth + 1);
    if (next === '[') return this.#list(depth + 1);
    if (next === '"') return this.#string();
    const number = this.#match(NUMBER);
    if (number !== undefined) {
      this.#number = number;
      return Number(number);
    }
    const start = this.#at;
    const word = this.#match(WORD);
    if (word !== undefined && Object.hasOwn(WORDS, word)) return WORDS[word] ?? null;
    this.#at = start;
    throw this.#error('expected a value');
  }

  #object(depth: number): JsonObject {
    const members: Record<string, JsonValue> = {};
    const lines = new Map<string, number>();
    this.#lines.set(members, lines);
    const open = this.#at;
    const places = new Map<string, MemberPlace>();
    this.#at += 1;
    while (this.#next() !== '}') {
      if (this.#next() !== '"') throw this.#error('expected the name of a member, in double quotes, or }');
      const start = this.#at;
      const name = this.#string();
      const twice = lines.has(name);
      const why = name === '__proto__' ? 'is not allowed' : twice && !this.#repeated ? 'occurs twice' : undefined;
      if (why !== undefined) {
        this.#at = start;
        throw this.#error(`the member ${name.slice(0, 60)} ${why}`, false);
      }
      const { line } = this.#place(start);
      lines.set(name, line);
      this.#path.push(name);
      if (twice) this.#repeated?.([...this.#path], line);
      if (this.#next() !== ':') throw this.#error('expected a colon');
      this.#at += 1;
      this.#next();
      const begin = this.#at;
      const member = this.#value(depth);
      this.#path.pop();
      members[name] = member;
      if (typeof member === 'number') keepNumber(members, name, this.#number);
      const end = this.#at;
      const more = this.#comma('}');
      places.set(name, { start, value: begin, end, comma: more ? this.#at - 1 : undefined });
      if (!more) break;
    }
    this.#places.set(members, { open, close: this.#at, members: places });
    this.#at += 1;
    return members;
  }

  #list(depth: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    const lines = new Map<string, number>();
    this.#lines.set(items, lines);
    this.#at += 1;
    while (this.#next() !== ']') {
      lines.set(String(items.length), this.#place(this.#at).line);
      this.#path.push(String(items.length));
      const item = this.#value(depth);
      this.#path.pop();
      items.push(item);
      if (typeof item === 'number') keepNumber(items, String(items.length - 1), this.#number);
      if (!this.#comma(']')) break;
    }
    this.#at += 1;
    return items;
  }

  /** Skips a comma. @returns false before the closing bracket */
  #comma(close: string): boolean {
    const next = this.#next();
    if (next === close) return false;
    if (next !== ',') throw this.#error(`expected a comma or ${close}`);
    this.#at += 1;
    return true;
  }

  #string(): string {
    const found = this.#match(STRING);
    if (found === undefined) throw this.#error('expected a text in double quotes that ends on its line', false);
    return found
      .slice(1, -1)
      .replace(/\\(?:u(.{4})|(.))/g, (_, code: string | undefined, letter: string) =>
        code === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
      );
  }

  /** Skips space and comments. @returns the next character; empty at the end */
  #next(): string {
    this.#match(SPACE);
    if (this.#text.startsWith('/*', this.#at)) throw this.#error('expected the end of this comment', false);
    return this.#text.charAt(this.#at);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  /** @param got adds the next character to the message */
  #error(expected: string, got = true): CommentedJsonError {
    const { line, column } = this.#place(this.#at);
    const next = this.#text.charAt(this.#at);
    const what = next === '' ? 'the end of the text' : next;
    return new CommentedJsonError(got ? `${expected}, got ${what}` : expected, line, column);
  }

  #place(at: number): { readonly line: number; readonly column: number } {
    let { at: start, line } = this.#counted.at <= at ? this.#counted : { at: 0, line: 1 };
    for (
      start = this.#text.indexOf('\n', start);
      start !== -1 && start < at;
      start = this.#text.indexOf('\n', start + 1)
    )
      line += 1;
    this.#counted = { at, line };
    return { line, column: at - this.#text.lastIndexOf('\n', at - 1) };
  }
}

/** Characters that an editor or a terminal does not show, or that reorder others. */
const HIDDEN = /[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** Formats a value for people: two spaces a level, and escapes for characters that they would not see. */
export function editableJson(value: JsonValue): string {
  const text = writeExact(value, 2);
  const visible = text.replace(HIDDEN, (character) =>
    character === '\n'
      ? character
      : [...Array(character.length).keys()]
          .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
          .join(''),
  );
  return `${visible}\n`;
}
