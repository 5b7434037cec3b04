/** Compares JSON with the expectation of a transcript, including wildcards, and reports the first difference. */
import type { JsonObject, JsonValue } from '../core/protocol/json.ts';
import { isJsonArray, isObjectInTest } from './test-json.ts';

const WILDCARD = '…';

/** The values of the named wildcards so far. */
export type Values = Map<string, JsonValue>;

/**
 * The first difference between `got` and `expected`; `undefined` if they match. `"…"` matches any value. `"…name"`
 * does, too, and stores the value; from then on it matches only that value. `"…": "…"` in an object allows more
 * members.
 */
export function difference(
  expected: JsonValue | undefined,
  got: JsonValue | undefined,
  values: Values,
  path = '',
): string | undefined {
  const name = wildcard(expected);
  if (name !== undefined) {
    if (got === undefined) return unlike(path, 'some value', got);
    const known = name === '' ? undefined : values.get(name);
    if (known !== undefined) return difference(known, got, new Map(), path);
    if (name !== '') values.set(name, got);
    return undefined;
  }
  if (isJsonArray(expected)) {
    if (!isJsonArray(got)) return unlike(path, show(expected), got);
    if (expected.length !== got.length) return unlike(path, `${expected.length} items`, got, ` (${got.length} items)`);
    return first(expected.map((item, index) => () => difference(item, got[index], values, `${path}[${index}]`)));
  }
  if (isObjectInTest(expected)) {
    if (!isObjectInTest(got)) return unlike(path, show(expected), got);
    return members(expected, got, values, path);
  }
  return Object.is(expected, got) ? undefined : unlike(path, show(expected), got);
}

/** `message` with each named wildcard replaced by its value. @throws {Error} for a wildcard without a value */
export function fillIn(message: JsonValue, values: Values): JsonValue {
  const name = wildcard(message);
  if (name !== undefined) {
    const value = values.get(name);
    if (value === undefined)
      throw new Error(
        name === ''
          ? '"…" matches any value and cannot be sent. Use a named value'
          : `"…${name}" has no value yet. Names with a value: ${[...values.keys()].join(', ') || 'none'}`,
      );
    return value;
  }
  if (isJsonArray(message)) return message.map((item) => fillIn(item, values));
  if (isObjectInTest(message))
    return Object.fromEntries(
      Object.entries(message).map(([key, value]) => [key, value === undefined ? value : fillIn(value, values)]),
    );
  return message;
}

function members(expected: JsonObject, got: JsonObject, values: Values, path: string): string | undefined {
  const open = WILDCARD in expected;
  const unexpected = Object.keys(got).find((key) => !Object.hasOwn(expected, key));
  return first([
    ...Object.keys(expected)
      .filter((key) => key !== WILDCARD)
      .map(
        (key) => () => difference(expected[key], Object.hasOwn(got, key) ? got[key] : undefined, values, at(path, key)),
      ),
    () => (open || unexpected === undefined ? undefined : unlike(at(path, unexpected), 'nothing', got[unexpected])),
  ]);
}

/** The first difference. In order, because a later wildcard may depend on an earlier one. */
function first(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const check of checks) {
    const found = check();
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The name of a wildcard; `''` for an unnamed one, `undefined` for any other value. */
function wildcard(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && /^…\w*$/.test(value) ? value.slice(WILDCARD.length) : undefined;
}

function at(path: string, key: string): string {
  if (!/^\w+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

function unlike(path: string, expected: string, got: JsonValue | undefined, more = ''): string {
  return `${path === '' ? '' : `${path}: `}expected ${expected}, got ${show(got)}${more}`;
}

function show(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
