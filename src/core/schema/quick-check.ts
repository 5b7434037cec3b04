/** Accepts values by the schemas that most tools have, without ajv. It never rejects: a value that it does not accept is for ajv. */
import { isObject } from '../protocol/json.ts';
import type { CompiledSchema } from './schema.ts';

/** True if a value certainly fits. */
type QuickCheck = (value: unknown) => boolean;

/** The keywords that decide nothing. */
const ANNOTATIONS: ReadonlySet<string> = new Set(
  ['$schema', '$comment', 'title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'].concat(
    'x-mcp-header',
  ),
);

const TYPES: Readonly<Record<string, QuickCheck>> = {
  array: Array.isArray,
  boolean: (value) => typeof value === 'boolean',
  integer: Number.isInteger,
  null: (value) => value === null,
  number: Number.isFinite,
  object: isObject,
  string: (value) => typeof value === 'string',
};

const isNumber = (value: unknown): value is number => typeof value === 'number';
const isString = (value: unknown): value is string => typeof value === 'string';
const isPrimitive = (value: unknown): boolean => typeof value !== 'object' || value === null;

/** The check of a keyword. Undefined for a value of the keyword that it leaves to ajv. */
type Keyword = (given: unknown, schema: Readonly<Record<string, unknown>>) => QuickCheck | undefined;

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  type(given) {
    const checks = [given].flat().map((name) => (isString(name) ? TYPES[name] : undefined));
    return checks.every((check) => check !== undefined) ? (value) => checks.some((check) => check(value)) : undefined;
  },
  enum: (given) => (Array.isArray(given) && given.every(isPrimitive) ? oneOf(given) : undefined),
  const: (given) => (isPrimitive(given) ? oneOf([given]) : undefined),
  minimum: bound((value, least) => value >= least),
  maximum: bound((value, most) => value <= most),
  exclusiveMinimum: bound((value, below) => value > below),
  exclusiveMaximum: bound((value, above) => value < above),
  minLength: size(isString, charactersIn, (count, least) => count >= least),
  maxLength: size(isString, charactersIn, (count, most) => count <= most),
  minItems: size(
    Array.isArray,
    ({ length }) => length,
    (count, least) => count >= least,
  ),
  maxItems: size(
    Array.isArray,
    ({ length }) => length,
    (count, most) => count <= most,
  ),
  required(given) {
    if (!Array.isArray(given)) return undefined;
    return (value) =>
      !isObject(value) || given.every((name) => Object.hasOwn(value, name) && value[name] !== undefined);
  },
  properties(given) {
    if (!isObject(given)) return undefined;
    const checks: [string, QuickCheck][] = [];
    for (const [name, schema] of Object.entries(given)) {
      const check = quickCheck(schema);
      if (!check) return undefined;
      checks.push([name, check]);
    }
    return (value) =>
      !isObject(value) || checks.every(([name, check]) => !Object.hasOwn(value, name) || check(value[name]));
  },
  additionalProperties(given, { properties }) {
    const check = quickCheck(given);
    const named = new Set(isObject(properties) ? Object.keys(properties) : []);
    if (!check) return undefined;
    return (value) => !isObject(value) || Object.keys(value).every((name) => named.has(name) || check(value[name]));
  },
  items(given) {
    const check = quickCheck(given);
    return check && ((value) => !Array.isArray(value) || value.every(check));
  },
};

/**
 * Makes the check of a guarded schema, or of a part of one. Undefined if the schema has a keyword that needs ajv, such as
 * `pattern`, `$ref` or `anyOf`.
 *
 * @param schema at most 32 levels deep, as the guard lets pass
 * @example quickCheck({ type: 'object', properties: { a: { type: 'number' } } })?.({ a: 3 }) // true
 */
export function quickCheck(schema: unknown): QuickCheck | undefined {
  if (typeof schema === 'boolean') return () => schema;
  if (!isObject(schema)) return undefined;
  const checks: QuickCheck[] = [];
  for (const [name, given] of Object.entries(schema)) {
    if (ANNOTATIONS.has(name)) continue;
    const check = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name]?.(given, schema) : undefined;
    if (!check) return undefined;
    checks.push(check);
  }
  return (value) => checks.every((check) => check(value));
}

/** Accepts values by a quick check, and leaves the others to a thorough one. */
export function acceptingBy(quick: QuickCheck, thorough: CompiledSchema['check']): CompiledSchema['check'] {
  return (value) => (quick(value) ? { ok: true, value } : thorough(value));
}

function oneOf(values: readonly unknown[]): QuickCheck {
  const known = new Set(values);
  return (value) => known.has(value);
}

function bound(fits: (value: number, bound: number) => boolean): Keyword {
  return (given) => (isNumber(given) ? (value) => !isNumber(value) || fits(value, given) : undefined);
}

function size<T>(
  is: (value: unknown) => value is T,
  count: (value: T) => number,
  fits: (count: number, bound: number) => boolean,
): Keyword {
  return (given) => (isNumber(given) ? (value) => !is(value) || fits(count(value), given) : undefined);
}

/** JSON Schema counts characters, not the units of UTF-16 (Validation, 6.3.1). */
function charactersIn(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
