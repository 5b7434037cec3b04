/** Formats problems: the path of a value, and the report in an `isError` result that a model can act on. */
import { describe, isObject } from '../protocol/json.ts';
import { clip, oneLine, quote } from './excerpts.ts';
import type { Problem } from './schema.ts';

/** Maximum number of problems in one report. A hostile value can have millions. */
export const PROBLEM_LIMIT = 100;

const LINE_LIMIT = 8;

/**
 * Explains why a value does not fit, in at most eight lines and a count of the rest (MCP 2026-07-28 server/tools,
 * "Error Handling": input validation errors belong in a result, so that the model can correct its call).
 * @param problems the problems from the check
 * @param subject what was checked, such as `arguments for tool "add"`
 * @example explain([{ path: 'a', expected: 'number', got: 'string "x"' }], 'arguments for tool "add"')
 * // Invalid arguments for tool "add":
 * // - a: expected number, got string "x"
 */
export function explain(problems: readonly Problem[], subject: string): string {
  return [`Invalid ${subject}:`, ...linesOf(problems).map((line) => `- ${line}`)].join('\n');
}

/**
 * The problems on one line, for the middle of a sentence. The limits are those of {@link explain}.
 *
 * @example inOneLine([{ path: 'a', expected: 'number', got: 'string "x"' }]) // a: expected number, got string "x"
 */
export function inOneLine(problems: readonly Problem[]): string {
  return linesOf(problems).join('; ');
}

function linesOf(problems: readonly Problem[]): readonly string[] {
  const lines = problems.slice(0, LINE_LIMIT).map(lineOf);
  const more = problems.length - lines.length;
  return more > 0 ? [...lines, `and ${problems.length >= PROBLEM_LIMIT ? 'at least ' : ''}${more} more`] : lines;
}

function lineOf({ path, expected, got, message }: Problem): string {
  const what = message === undefined ? `expected ${expected}, got ${got}` : `${message} (got ${got})`;
  return oneLine(clip(path === '' ? what : `${path}: ${what}`, 600));
}

/**
 * Creates a problem from the keys that lead to its place.
 * @param root the whole value as it came; determines whether a key is an index or a property, and what was received
 * @param keys the path from the root
 * @param expected the expectation, without the word "expected"
 * @param message the validation library's own message, if a library checked the value
 */
export function problemAt(root: unknown, keys: readonly PropertyKey[], expected: string, message?: string): Problem {
  let path = '';
  let value = root;
  for (const key of keys) {
    // A hostile value may be wrong thousands of levels down: the path is shortened long before.
    if (path.length <= 200) path += segment(key, value, path === '');
    value = valueAt(value, key);
  }
  const problem = { path: clip(path, 200), expected, got: oneLine(describe(value)) };
  return message === undefined ? problem : { ...problem, message };
}

function segment(key: PropertyKey, parent: unknown, first: boolean): string {
  if (Array.isArray(parent) || typeof key === 'number') return `[${String(key)}]`;
  const name = String(key);
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]{0,59}$/u.test(name)) return `[${quote(name)}]`;
  return first ? name : `.${name}`;
}

/** Reads own properties only: `constructor` or `__proto__` in a path must not show inherited members. */
function valueAt(parent: unknown, key: PropertyKey): unknown {
  if (Array.isArray(parent)) return parent[Number(key)];
  return isObject(parent) && Object.hasOwn(parent, key) ? Reflect.get(parent, key) : undefined;
}
