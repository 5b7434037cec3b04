/** Checks that can take exponential time on a few bytes, such as by a pattern or a recursive union, run for so long at most. */
import { type Context, createContext, Script } from 'node:vm';
import type { SchemaNode, SchemaTree } from './walk.ts';

/** A check did not end within its time. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
}

/** Most subschemas and choices, counted through references, that may judge each part of a value before its check is timed. */
const MAX_QUICK = 1_000;

const TIMED_OUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';

const lent: { run: () => unknown } = { run: () => undefined };
let prepared: { readonly script: Script; readonly context: Context } | undefined;

/**
 * Runs a function that neither waits nor calls an author's code. Only this way of Node breaks off a loop or a pattern that holds
 * the thread; it costs 0.2 ms, so it is for schemas that {@link mayTakeLong}.
 *
 * @param ms how long it may run, in milliseconds, at least 1
 * @throws TooLong when that is not enough, and whatever `run` throws
 * @example bounded(() => validate(value), 250)
 */
export function bounded<T>(run: () => T, ms: number): T {
  prepared ??= { script: new Script('run()'), context: createContext(lent) };
  let result: { readonly value: T } | undefined;
  lent.run = () => {
    result = { value: run() };
  };
  try {
    prepared.script.runInContext(prepared.context, { timeout: ms });
  } catch (error) {
    // The error is of the other context, where `Error` is another one.
    const isOver = typeof error === 'object' && error !== null && 'code' in error && error.code === TIMED_OUT;
    throw isOver ? new TooLong(`took longer than ${ms} ms`) : error;
  } finally {
    lent.run = () => undefined;
  }
  if (result === undefined) throw new TooLong('was broken off');
  return result.value;
}

/**
 * True where a check may take more than time in proportion to the value: by a pattern that tries again, by comparing items each
 * with each, by references that judge one part of the value in more than one way, level after level, or by thousands of choices.
 */
export function mayTakeLong({ nodes, root }: SchemaTree): boolean {
  for (const { schema } of nodes.values()) {
    if (typeof schema === 'boolean') continue;
    const { pattern, patternProperties, uniqueItems, format } = schema;
    // The expression of ajv-formats for "url" is quadratic; those of the formats that JSON Schema knows are linear.
    if (uniqueItems === true || format === 'url') return true;
    const patterns = [
      ...(typeof pattern === 'string' ? [pattern] : []),
      ...(typeof patternProperties === 'object' && patternProperties !== null ? Object.keys(patternProperties) : []),
    ];
    if (!patterns.every(isQuick)) return true;
  }
  return unfolded(root, new Map(), new Set()) > MAX_QUICK;
}

/** True for a pattern that surely takes time in proportion to the text: one repetition after `^`, or none; no groups, no choices. */
export function isQuick(pattern: string): boolean {
  if (/\\[1-9k]|[(|]/.test(pattern)) return false;
  const bare = pattern.replace(/\\./gsu, 'x').replace(/\[[^\]]*\]/g, 'x');
  const repetitions = bare.match(/[*+?]|\{\d*,/g)?.length ?? 0;
  return repetitions === 0 || (repetitions === 1 && bare.startsWith('^'));
}

/** How many subschemas and choices there are once each reference is replaced by what it names; infinite where that contains itself. */
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
