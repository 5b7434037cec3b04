/** A second matcher for URI templates, plain and exponential: it tries every split in order, so it cannot miss one. */

type Found = Readonly<Record<string, string | readonly string[]>>;

export interface OracleVariable {
  readonly name: string;
  readonly explode: boolean;
  readonly prefix?: number;
}

export interface OracleExpression {
  readonly operator: string;
  readonly variables: readonly OracleVariable[];
}

/** Stands for `%2F` in the URIs that the oracle reads. */
export const ENCODED_SLASH = 'S';

const shapes: Readonly<Record<string, { readonly first: string; readonly separator: string; readonly bars: string }>> =
  {
    '': { first: '', separator: ',', bars: '/?#' },
    '+': { first: '', separator: ',', bars: '' },
    '#': { first: '#', separator: ',', bars: '' },
    '.': { first: '.', separator: '.', bars: '/?#' },
    '/': { first: '/', separator: '/', bars: '/?#' },
    ';': { first: ';', separator: ';', bars: ';/?#' },
    '?': { first: '?', separator: '&', bars: '&#' },
    '&': { first: '&', separator: '&', bars: '&#' },
  };

/** The values that the first fitting reading gives: earlier expressions shorter, but rather something than nothing. */
export function oracle(parts: readonly (string | OracleExpression)[], uri: string): Found | undefined {
  const [part, ...rest] = parts;
  if (part === undefined) return uri === '' ? {} : undefined;
  if (typeof part === 'string') return uri.startsWith(part) ? oracle(rest, uri.slice(part.length)) : undefined;
  const lengths = [...Array(uri.length + 1).keys()].slice(1);
  if (shapes[part.operator]?.first !== '') lengths.push(0);
  for (const length of lengths) {
    const mine = read(part, uri.slice(0, length), uri[length] ?? '');
    const others = mine && oracle(rest, uri.slice(length));
    if (others) return { ...mine, ...others };
  }
  return undefined;
}

function read({ operator, variables }: OracleExpression, text: string, next: string): Found | undefined {
  const { first, separator, bars } = shapes[operator] ?? { first: '', separator: '', bars: '' };
  if (text === '') return {};
  if (!text.startsWith(first)) return undefined;
  const body = text.slice(first.length);
  const named = ';?&'.includes(operator) && operator !== '';
  if (named) return readNamed(variables, body.split(separator), bars, next);
  const [alone] = variables;
  const whole = variables.length === 1 && alone?.explode === false;
  const values = whole ? [body] : body.split(separator);
  if (values.some((value) => [...bars].some((bar) => value.includes(bar)))) return undefined;
  let surplus = values.length - variables.length;
  if (surplus > 0 && variables.every(({ explode }) => !explode)) return undefined;
  const found: Record<string, string | readonly string[]> = {};
  for (const { name, explode, prefix } of variables) {
    const value = values.shift();
    if (value === undefined) break;
    if (prefix !== undefined && value.length > prefix) return undefined;
    found[name] = explode ? [value, ...values.splice(0, Math.max(0, surplus))].map(decode) : decode(value);
    if (explode) surplus = 0;
  }
  return found;
}

function readNamed(
  variables: readonly OracleVariable[],
  parameters: readonly string[],
  bars: string,
  next: string,
): Found | undefined {
  const found: Record<string, string | readonly string[]> = {};
  for (const [index, parameter] of parameters.entries()) {
    const [name = '', ...values] = parameter.split('=');
    const value = values.join('=');
    const variable = variables.find((other) => other.name === name);
    if (!variable || [...bars].some((bar) => value.includes(bar))) return undefined;
    // A name ends where no letter, digit or dot follows; then an equals sign belongs to it.
    const cut = index === parameters.length - 1 && values.length === 0 && /[\w.=]/.test(next);
    if (cut || value.length > (variable.prefix ?? Number.POSITIVE_INFINITY)) return undefined;
    const before = found[name];
    if (before !== undefined && !variable.explode) return undefined;
    found[name] = variable.explode ? [...(Array.isArray(before) ? before : []), decode(value)] : decode(value);
  }
  return found;
}

function decode(value: string): string {
  return value.replaceAll(ENCODED_SLASH, '/');
}
