/** The literals of JavaScript in the tokens of a script: what is known of a value before the script runs. */
import type { ScriptToken } from './script-tokens.ts';

/** A value of which at least a part is known. `at`: its place in the script. */
export type ScriptLiteral =
  | { readonly type: 'unknown' }
  /** Undefined: JSON leaves out a member that has it. */
  | { readonly type: 'absent' }
  | { readonly type: 'value'; readonly value: string | number | boolean | null; readonly at: number }
  /** A text whose characters are unknown. */
  | { readonly type: 'text'; readonly at: number }
  | { readonly type: 'list'; readonly items: readonly ScriptLiteral[]; readonly at: number }
  | {
      readonly type: 'object';
      readonly members: ReadonlyMap<string, { readonly literal: ScriptLiteral; readonly at: number }>;
      /** It has other members, too: those of a spread, or with computed names. */
      readonly isOpen: boolean;
      readonly at: number;
    };

const UNKNOWN: ScriptLiteral = { type: 'unknown' };
const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const NUMBER = /^(?:0|[1-9][\d_]*|0[xX][\da-fA-F_]+)$/;
/** Literals inside literals. */
const MAX_DEPTH = 20;

/** Reads the literals of one script. */
export class LiteralReader {
  readonly #code: string;
  readonly #tokens: readonly ScriptToken[];
  readonly #closings: ReadonlyMap<number, number>;
  #at = 0;

  constructor(code: string, tokens: readonly ScriptToken[], closings: ReadonlyMap<number, number>) {
    this.#code = code;
    this.#tokens = tokens;
    this.#closings = closings;
  }

  /** The arguments of a call. @param opening the place of its parenthesis */
  arguments(opening: number): readonly ScriptLiteral[] | undefined {
    const end = this.#closings.get(opening);
    if (end === undefined) return undefined;
    this.#at = opening + 1;
    return this.#list(end, 0);
  }

  /** Reads values up to the place of a closing mark; undefined if their number is unknown. */
  #list(end: number, depth: number): readonly ScriptLiteral[] | undefined {
    const items: ScriptLiteral[] = [];
    let isKnown = true;
    while (this.#at < end) {
      if (this.#text() === '...') isKnown = false;
      items.push(this.#value(end, depth));
      this.#at += 1;
    }
    this.#at = end;
    return isKnown ? items : undefined;
  }

  /** Reads one value, up to a comma or the end. */
  #value(end: number, depth: number): ScriptLiteral {
    const literal = depth > MAX_DEPTH ? undefined : this.#literal(end, depth);
    const isWhole = this.#at >= end || this.#text() === ',';
    // An expression that begins with a literal is none.
    if (!isWhole) this.#skip(end);
    return (isWhole && literal) || UNKNOWN;
  }

  #literal(end: number, depth: number): ScriptLiteral | undefined {
    const token = this.#tokens[this.#at];
    if (!token || this.#at >= end) return undefined;
    const { kind, text, at } = token;
    const closing = this.#closings.get(this.#at);
    if (text === '-' && this.#tokens[this.#at + 1]?.kind === 'word') {
      this.#at += 1;
      const number = this.#number();
      return number === undefined ? undefined : { type: 'value', value: -number, at };
    }
    if (kind === 'word') {
      const number = this.#number();
      if (number !== undefined) return { type: 'value', value: number, at };
      const value = WORDS.get(text);
      this.#at += 1;
      if (value !== undefined) return { type: 'value', value, at };
      return text === 'undefined' ? { type: 'absent' } : undefined;
    }
    if (kind === 'text') {
      this.#at += 1;
      // The other texts are regular expressions.
      return this.#code[at] === '/' ? undefined : { type: 'value', value: text, at };
    }
    if (text === '""' || text === '`') {
      this.#at += 1;
      return { type: 'text', at };
    }
    if (closing === undefined || closing > end) return undefined;
    if (text === '[') {
      this.#at += 1;
      const items = this.#list(closing, depth + 1);
      this.#at = closing + 1;
      return items && { type: 'list', items, at };
    }
    return text === '{' ? this.#object(closing, depth + 1, at) : undefined;
  }

  /** A number, which may be three tokens: `1`, `.` and `5`. */
  #number(): number | undefined {
    const { text = '', at = 0 } = this.#tokens[this.#at] ?? {};
    if (!NUMBER.test(text)) return undefined;
    const [point, fraction] = [this.#tokens[this.#at + 1], this.#tokens[this.#at + 2]];
    const isDecimal =
      point?.text === '.' && point.at === at + text.length && fraction !== undefined && /^\d+$/.test(fraction.text);
    this.#at += isDecimal ? 3 : 1;
    return Number((isDecimal ? `${text}.${fraction.text}` : text).replaceAll('_', ''));
  }

  #object(end: number, depth: number, at: number): ScriptLiteral {
    const members = new Map<string, { readonly literal: ScriptLiteral; readonly at: number }>();
    let isOpen = false;
    this.#at += 1;
    while (this.#at < end) {
      const { kind, text, at: place } = this.#tokens[this.#at] ?? { kind: 'mark', text: '', at: 0 };
      const next = this.#tokens[this.#at + 1]?.text;
      if (kind === 'mark') {
        // A spread, a computed name, or a name with escapes.
        isOpen ||= text !== ',';
        this.#skip(end);
      } else if (next === ':') {
        this.#at += 2;
        const literal = this.#value(end, depth);
        // That is no member.
        if (text !== '__proto__') members.set(text, { literal, at: place });
      } else {
        // A short form, or a method. Of `async a() {}` and `get a() {}` the name is the second word.
        const isShort = next === ',' || next === '}' || next === '(';
        if (isShort) members.set(text, { literal: UNKNOWN, at: place });
        else isOpen = true;
        this.#skip(end);
      }
      this.#at += 1;
    }
    this.#at = end + 1;
    return { type: 'object', members, isOpen, at };
  }

  /** Goes to the next comma, or to the end. */
  #skip(end: number): void {
    while (this.#at < end && this.#text() !== ',') this.#at = (this.#closings.get(this.#at) ?? this.#at) + 1;
    if (this.#at > end) this.#at = end;
  }

  #text(): string | undefined {
    return this.#tokens[this.#at]?.text;
  }
}
