/**
 * Limits the time of checks that can be exponential in a few bytes, such as checks with a pattern or a recursive union.
 */

import { type Context, createContext, Script } from 'node:vm';
import { durationOf } from '../kernel/duration.ts';
import { markTimedRun } from '../kernel/timed-run.ts';
import type { SchemaNode, SchemaTree } from './walk.ts';

/** Thrown when a check exceeds its time. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
}

/**
 * Maximum number of subschemas and choices, counted through references, that may apply to each part of a value before its check is
 * timed.
 */
const MAX_QUICK = 1_000;

const TIMED_OUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';

const sandbox: { run: () => unknown } = { run: () => undefined };
let prepared: { readonly script: Script; readonly context: Context } | undefined;

/**
 * Runs a synchronous function that does not call an author's code, with a time limit. Only `node:vm` can interrupt a
 * loop or a pattern that blocks the thread. It costs 0.2 ms, so it is used only for schemas that {@link mayTakeLong}.
 * @param ms time limit in milliseconds, at least 1
 * @throws {TooLong} when the limit is exceeded; errors of `run` pass through
 * @example bounded(() => validate(value), 250)
 */
export function bounded<T>(run: () => T, ms: number): T {
  prepared ??= { script: new Script('run()'), context: createContext(sandbox) };
  let result: { readonly value: T } | undefined;
  sandbox.run = () => {
    result = { value: run() };
  };
  markTimedRun();
  try {
    prepared.script.runInContext(prepared.context, { timeout: ms });
  } catch (error) {
    // The error comes from the other context, which has its own `Error`.
    const isOver = typeof error === 'object' && error !== null && 'code' in error && error.code === TIMED_OUT;
    throw isOver ? new TooLong(`took longer than ${durationOf(ms)}`) : error;
  } finally {
    markTimedRun();
    sandbox.run = () => undefined;
  }
  if (result === undefined) throw new TooLong('was interrupted');
  return result.value;
}

/**
 * Tests a text with a pattern that another program sent.
 *
 * @returns undefined for a pattern that does not compile, takes longer than the limit, or nests too deeply
 * @example matchesWithin('^(a|a)*$', `${'a'.repeat(40)}!`, 250) // undefined
 */
export function matchesWithin(pattern: string, text: string, ms: number): boolean | undefined {
  try {
    const test = (): boolean => new RegExp(pattern, 'u').test(text);
    return isQuick(pattern) ? test() : bounded(test, ms);
  } catch (error) {
    if (error instanceof TooLong || error instanceof SyntaxError || error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * True if a check may take more than linear time: because a pattern backtracks, items are compared with each other,
 * references apply several subschemas to one part of the value on every level, or there are thousands of choices.
 */
export function mayTakeLong({ nodes, root }: SchemaTree): boolean {
  for (const { schema } of nodes.values()) {
    if (typeof schema === 'boolean') continue;
    const { pattern, patternProperties, uniqueItems, format } = schema;
    // The expression of ajv-formats for "url" is quadratic; those of the formats that JSON Schema defines are linear.
    if (uniqueItems === true || format === 'url') return true;
    const patterns = [
      ...(typeof pattern === 'string' ? [pattern] : []),
      ...(typeof patternProperties === 'object' && patternProperties !== null ? Object.keys(patternProperties) : []),
    ];
    if (!patterns.every(isQuick)) return true;
  }
  return unfolded(root, new Map(), new Set()) > MAX_QUICK;
}

/** Maximum number of characters that a quick pattern may compare again at each position of a text. */
const MAX_WIDTH = 16;

/**
 * True if a pattern certainly takes linear time: no groups and no alternatives, at most one repetition, after `^`, and few
 * characters that are compared again at each position. `[ab]{40000}c` has no repetition of variable length, and still takes
 * 40,000 steps for each character of a text.
 */
export function isQuick(pattern: string): boolean {
  if (/\\[1-9k]|[(|]/.test(pattern)) return false;
  const bare = pattern.replace(/\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\./gsu, 'x').replace(/\[[^\]]*\]/g, 'x');
  const [fixed = '', ...more] = bare.split(/[*+?]\??|\{\d*,\d*\}\??/);
  if (more.length > 1 || (more.length === 1 && !bare.startsWith('^'))) return false;
  const again = bare.startsWith('^') ? (more[0] ?? '') : fixed;
  let width = again.length;
  for (const [, count] of again.matchAll(/\{(\d+)\}/g)) width += Number(count);
  return width <= MAX_WIDTH;
}

/**
 * The number of subschemas and choices after each reference is replaced by its target; infinite if a target contains
 * itself.
 */
function unfolded(node: SchemaNode, known: Map<SchemaNode, number>, open: Set<SchemaNode>): number {
  const before = known.get(node);
  if (before !== undefined) return before;
  if (open.has(node)) return Number.POSITIVE_INFINITY;
  open.add(node);
  const { schema } = node;
  let sum = typeof schema !== 'boolean' && Array.isArray(schema.enum) ? schema.enum.length : 1;
  for (const next of [...node.inPlace, ...node.inner]) sum += unfolded(next, known, open);
  open.delete(node);
  known.set(node, sum);
  return sum;
}
