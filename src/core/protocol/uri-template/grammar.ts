/**
 * The grammar of URI templates (RFC 6570 section 2): converts template text into parts, or throws an error that
 * suggests a fix.
 */
import { TemplateError } from './template-error.ts';

/** Maximum length of a template, in UTF-16 code units. */
const MAX_TEMPLATE_LENGTH = 2048;
/** Maximum number of expressions (`{…}`) in one template. */
const MAX_EXPRESSIONS = 32;

/** One row of RFC 6570 appendix A: how an operator writes its values. */
export interface Operator {
  readonly symbol: '' | '+' | '#' | '.' | '/' | ';' | '?' | '&';
  /** Written before the first defined value. */
  readonly first: string;
  readonly separator: string;
  /** True if each value is written as `name=value`. */
  readonly named: boolean;
  /** Written after the name of an empty value. */
  readonly ifEmpty: string;
  /** True if reserved characters and percent-escapes of a value are written unchanged. */
  readonly reserved: boolean;
}

export interface Variable {
  /** The name as written in the template. */
  readonly name: string;
  /** Index among all variables of the template, from 0. */
  readonly id: number;
  readonly explode: boolean;
  /** Maximum number of characters of the value (`:n`), or `Infinity`. */
  readonly prefix: number;
}

export interface Expression {
  readonly operator: Operator;
  readonly variables: readonly Variable[];
}

/** Literal text, or an expression. Two literals are never adjacent. */
export type TemplatePart = string | Expression;

const simple: Operator = { symbol: '', first: '', separator: ',', named: false, ifEmpty: '', reserved: false };
const operators: ReadonlyMap<string, Operator> = new Map(
  [
    { ...simple, symbol: '+', reserved: true } as const,
    { ...simple, symbol: '#', first: '#', reserved: true } as const,
    { ...simple, symbol: '.', first: '.', separator: '.' } as const,
    { ...simple, symbol: '/', first: '/', separator: '/' } as const,
    { ...simple, symbol: ';', first: ';', separator: ';', named: true } as const,
    { ...simple, symbol: '?', first: '?', separator: '&', named: true, ifEmpty: '=' } as const,
    { ...simple, symbol: '&', first: '&', separator: '&', named: true, ifEmpty: '=' } as const,
  ].map((operator) => [operator.symbol, operator]),
);

const RESERVED_OPERATORS = '=,!@|';
const VARIABLE_NAME = /^(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*$/;
const PREFIX = /^[1-9][0-9]{0,3}$/;
/**
 * Characters that RFC 6570 section 2.1 excludes from literals. The apostrophe is accepted, because URIs allow it (RFC
 * 3986 section 2.2).
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what it looks for
const NOT_LITERAL = /[\u0000-\u0020"<>\\^`{|}\u007f-\u009f]|%(?![0-9A-Fa-f]{2})|\p{Surrogate}/u;

/**
 * Parses a template into its parts.
 *
 * @throws TemplateError if the text violates RFC 6570 section 2, names a variable twice, or exceeds a limit above
 * @example readParts('users/{id}') // ['users/', { operator, variables: [{ name: 'id', … }] }]
 */
export function readParts(text: string): TemplatePart[] {
  if (text.length > MAX_TEMPLATE_LENGTH) {
    const bound = `expected at most ${MAX_TEMPLATE_LENGTH} characters, got ${text.length}`;
    throw problem(text, MAX_TEMPLATE_LENGTH, `${bound}. Shorten the literal text or the names`);
  }
  const parts: TemplatePart[] = [];
  const names = new Set<string>();
  let expressions = 0;
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '{') {
      const open = text.indexOf('{', at);
      const end = open === -1 ? text.length : open;
      parts.push(readLiteral(text, at, end));
      at = end;
      continue;
    }
    const close = text.indexOf('}', at);
    if (close === -1) {
      throw problem(text, at, 'expected "}" after this "{", got none. Close it, or write %7B for a literal "{"');
    }
    expressions += 1;
    if (expressions > MAX_EXPRESSIONS) {
      const fix = 'Combine variables, as in {?a,b}';
      throw problem(text, at, `expected at most ${MAX_EXPRESSIONS} expressions. ${fix}`);
    }
    parts.push(readExpression(text, at, close, names));
    at = close + 1;
  }
  return parts;
}

function readLiteral(text: string, start: number, end: number): string {
  const literal = text.slice(start, end);
  const bad = NOT_LITERAL.exec(literal);
  if (bad) {
    const at = start + bad.index;
    if (bad[0] === '}') throw problem(text, at, 'expected "{" before this "}". Remove it, or write %7D');
    if (bad[0] === '%') throw problem(text, at, 'expected two hex digits after "%". Write %25 for a percent sign');
    const fix = bad[0].length === 1 && isSurrogate(bad[0]) ? 'Remove it' : `Write ${encodeURIComponent(bad[0])}`;
    throw problem(text, at, `expected a character that URIs allow, got ${quoted(bad[0] ?? '')}. ${fix}`);
  }
  if (decoded(literal) === undefined) {
    throw problem(text, start, 'expected percent-escapes of UTF-8 bytes, got other bytes. Encode the text as UTF-8');
  }
  return literal;
}

function readExpression(text: string, open: number, close: number, names: Set<string>): Expression {
  const body = text.slice(open + 1, close);
  const symbol = body.slice(0, 1);
  if (symbol !== '' && RESERVED_OPERATORS.includes(symbol)) {
    const expected = 'expected an operator (one of + # . / ; ? &) or a variable name';
    throw problem(text, open + 1, `${expected}, got "${symbol}", which RFC 6570 reserves. Remove it`);
  }
  const operator = operators.get(symbol) ?? simple;
  let at = open + 1 + operator.symbol.length;
  if (at === close) {
    throw problem(
      text,
      open,
      `expected a variable name between the braces, got none. Write, for example, {${symbol}id}`,
    );
  }
  const variables = text
    .slice(at, close)
    .split(',')
    .map((spec) => {
      const variable = readVariable(text, at, spec, names.size);
      const key = decoded(variable.name) ?? variable.name;
      if (names.has(key)) {
        const why = 'which makes matches ambiguous. Rename one';
        throw problem(text, at, `expected each variable once, got "${variable.name}" again, ${why}`);
      }
      names.add(key);
      at += spec.length + 1;
      return variable;
    });
  return { operator, variables };
}

function readVariable(text: string, at: number, spec: string, id: number): Variable {
  const explode = spec.endsWith('*');
  const colon = spec.indexOf(':');
  const name = spec.slice(0, colon !== -1 ? colon : spec.length - (explode ? 1 : 0));
  if (colon !== -1 && spec.includes('*')) {
    throw problem(text, at, `expected either ":n" or "*" after a name, got ${quoted(spec)}. Remove one of them`);
  }
  if (!VARIABLE_NAME.test(name) || decoded(name) === undefined) {
    const parts = name.match(/\w+/g);
    const fix = parts ? `Write ${parts.join('_')}` : 'Name the variable, for example id';
    const rule = 'expected a variable name (letters, digits, "_", single dots between them)';
    throw problem(text, at, `${rule}, got ${quoted(name)}. ${fix}`);
  }
  if (colon === -1) return { name, id, explode, prefix: Number.POSITIVE_INFINITY };
  const length = spec.slice(colon + 1);
  if (!PREFIX.test(length)) {
    const came = quoted(spec.slice(colon));
    throw problem(text, at + colon, `expected ":" and a length from 1 to 9999, got ${came}. Write, for example, :3`);
  }
  return { name, id, explode: false, prefix: Number(length) };
}

/** Percent-decodes; `undefined` if an escape is malformed or not UTF-8. */
export function decoded(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function isSurrogate(unit: string): boolean {
  return unit >= '\ud800' && unit <= '\udfff';
}

function problem(text: string, at: number, why: string): TemplateError {
  const shown = text.length > 80 ? `${text.slice(0, 79)}…` : text;
  return new TemplateError(`URI template ${quoted(shown)}, character ${at + 1}: ${why}`);
}

/** Quotes a text for a message and makes invisible characters visible. */
function quoted(text: string): string {
  const visible = text.replace(/[\p{Cc}\p{Cf}\p{Cs}"\\]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0x1f && code < 0x7f ? `\\${character}` : `\\u{${code.toString(16)}}`;
  });
  return `"${visible}"`;
}
