/** The grammar of URI templates (RFC 6570 section 2): template text in, parts out, or an error that says what to write. */

/** Longest template, in UTF-16 code units. */
const MAX_TEMPLATE_LENGTH = 2048;
/** Most expressions (`{…}`) in one template. */
const MAX_EXPRESSIONS = 32;

/** A template that is malformed, or values that it cannot expand. The message says where, what was expected and how to fix it. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

/** One row of RFC 6570 appendix A: how an operator writes its values. */
export interface Operator {
  readonly symbol: '' | '+' | '#' | '.' | '/' | ';' | '?' | '&';
  /** Written before the first value that is defined. */
  readonly first: string;
  readonly separator: string;
  /** True where each value is written as `name=value`. */
  readonly named: boolean;
  /** Written after the name of an empty value. */
  readonly ifEmpty: string;
  /** True where reserved characters and percent-escapes of a value are written as they are. */
  readonly reserved: boolean;
}

export interface Variable {
  /** The name as the template writes it. */
  readonly name: string;
  /** Its place among all variables of the template, from 0. */
  readonly id: number;
  readonly explode: boolean;
  /** Most characters of the value (`:n`), or `Infinity`. */
  readonly prefix: number;
}

export interface Expression {
  readonly operator: Operator;
  readonly variables: readonly Variable[];
}

/** Literal text, or an expression. Two literals are never neighbours. */
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
/** What RFC 6570 section 2.1 keeps out of literals. The apostrophe is let in, as URIs allow it (RFC 3986 section 2.2). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what it looks for
const NOT_LITERAL = /[\u0000-\u0020"<>\\^`{|}\u007f-\u009f]|%(?![0-9A-Fa-f]{2})|\p{Surrogate}/u;

/**
 * Reads a template into its parts.
 *
 * @throws TemplateError where the text breaks RFC 6570 section 2, names a variable twice, or passes a bound above.
 * @example readParts('users/{id}') // ['users/', { operator, variables: [{ name: 'id', … }] }]
 */
export function readParts(text: string): TemplatePart[] {
  if (text.length > MAX_TEMPLATE_LENGTH) {
    const bound = `expected at most ${MAX_TEMPLATE_LENGTH} characters, got ${text.length}`;
    throw problem(text, MAX_TEMPLATE_LENGTH, `${bound}; shorten the literal text or the names`);
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
      throw problem(text, at, 'expected "}" after this "{", got none; close it, or write %7B for the character');
    }
    expressions += 1;
    if (expressions > MAX_EXPRESSIONS) {
      const fix = 'put several variables into one, such as {?a,b}';
      throw problem(text, at, `expected at most ${MAX_EXPRESSIONS} expressions; ${fix}`);
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
    if (bad[0] === '}') throw problem(text, at, 'expected "{" before this "}"; remove it, or write %7D');
    if (bad[0] === '%') throw problem(text, at, 'expected two hex digits after "%"; write %25 for a percent sign');
    const fix = bad[0].length === 1 && isSurrogate(bad[0]) ? 'remove it' : `write ${encodeURIComponent(bad[0])}`;
    throw problem(text, at, `expected a character that a URI may hold, got ${quoted(bad[0] ?? '')}; ${fix}`);
  }
  if (decoded(literal) === undefined) {
    throw problem(text, start, 'expected percent-escapes of UTF-8, got others; escape the UTF-8 bytes of the text');
  }
  return literal;
}

function readExpression(text: string, open: number, close: number, names: Set<string>): Expression {
  const body = text.slice(open + 1, close);
  const symbol = body.slice(0, 1);
  if (symbol !== '' && RESERVED_OPERATORS.includes(symbol)) {
    const expected = 'expected an operator (one of + # . / ; ? &) or a variable name';
    throw problem(text, open + 1, `${expected}, got "${symbol}", which RFC 6570 reserves; remove it`);
  }
  const operator = operators.get(symbol) ?? simple;
  let at = open + 1 + operator.symbol.length;
  if (at === close) {
    throw problem(text, open, `expected a variable name between the braces, got none; write such as {${symbol}id}`);
  }
  const variables = text
    .slice(at, close)
    .split(',')
    .map((spec) => {
      const variable = readVariable(text, at, spec, names.size);
      const key = decoded(variable.name) ?? variable.name;
      if (names.has(key)) {
        const why = 'which would make a match ambiguous; rename one';
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
    throw problem(text, at, `expected either ":n" or "*" after a name, got ${quoted(spec)}; remove one of them`);
  }
  if (!VARIABLE_NAME.test(name) || decoded(name) === undefined) {
    const parts = name.match(/\w+/g);
    const fix = parts ? `write ${parts.join('_')}` : 'name the variable, such as id';
    const rule = 'expected a variable name (letters, digits, "_", single dots between them)';
    throw problem(text, at, `${rule}, got ${quoted(name)}; ${fix}`);
  }
  if (colon === -1) return { name, id, explode, prefix: Number.POSITIVE_INFINITY };
  const length = spec.slice(colon + 1);
  if (!PREFIX.test(length)) {
    const came = quoted(spec.slice(colon));
    throw problem(text, at + colon, `expected ":" and a length from 1 to 9999, got ${came}; write such as :3`);
  }
  return { name, id, explode: false, prefix: Number(length) };
}

/** Percent-decodes, or answers `undefined` where an escape is malformed or not UTF-8. */
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

/** A text for a message, with what does not show made visible. */
function quoted(text: string): string {
  const visible = text.replace(/[\p{Cc}\p{Cf}\p{Cs}"\\]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0x1f && code < 0x7f ? `\\${character}` : `\\u{${code.toString(16)}}`;
  });
  return `"${visible}"`;
}
