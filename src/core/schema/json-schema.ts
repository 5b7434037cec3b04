/**
 * Checks values by a plain JSON Schema. A quick check accepts values by simple schemas without ajv. A compiled function of ajv
 * decides about the others; a second, slower one collects the errors of a value that does not fit.
 */
import { durationOf } from '../kernel/duration.ts';
import { describe } from '../protocol/json.ts';
import { loadAjv, type MakeValidator, type Validator, type ValidatorError, validatorMaker } from './ajv.ts';
import { needAjv } from './ajv-preload.ts';
import { ajvProblems } from './ajv-problems.ts';
import { bounded, mayTakeLong, TooLong } from './bounded.ts';
import { acceptingBy, quickCheck } from './quick-check.ts';
import type { Checked, CompiledSchema, Problem } from './schema.ts';
import { type GuardedSchema, schemaTree } from './schema-guard.ts';

/**
 * Values with more parts than this get only their first problem reported: collecting every error of a hostile value
 * with millions of parts takes gigabytes.
 */
const DETAIL_LIMIT = 2_000;

/**
 * Maximum number of errors that are converted into problems. A recursive union reports each level once for each path to it: 2^n
 * errors.
 */
const MAX_ERRORS = 2_000;

/** Time limits in milliseconds: for one check, and for collecting every problem of a value that does not fit. */
export const CHECK_MS = 250;
const DETAIL_MS = 100;

/**
 * Compiles a guarded schema. Compiling takes 0.5 to 10 ms, so it happens at the first check that ajv decides. A check before
 * ajv is loaded also loads it, and therefore returns a promise.
 * @param where begins the error message if ajv cannot compile a schema that the guard accepted, which no test has
 *   produced
 */
export function compilePlain(guarded: GuardedSchema, where: string): CompiledSchema {
  const { json, dialect } = guarded;
  const quick = quickCheck(json);
  if (!quick) needAjv();
  /** Set with the first check. */
  let first: Validator | undefined;
  let all: Validator | undefined;
  let isSlow = false;
  const limited = (validate: Validator, value: unknown, ms: number): boolean =>
    isSlow ? bounded(() => validate(value), ms) : validate(value);

  const compile = (make: MakeValidator, errors: 'first' | 'all'): Validator => {
    try {
      return make(json, dialect, errors);
    } catch (cause) {
      throw new Error(
        `${where}: the schema cannot be compiled: ${cause instanceof Error ? cause.message : String(cause)}`,
        { cause },
      );
    }
  };

  /**
   * Every error. Undefined if collecting them recurses too deeply or takes too long, although stopping at the first
   * error did not.
   */
  const everyError = (value: unknown): readonly ValidatorError[] | undefined => {
    const make = validatorMaker();
    if (!make) return undefined;
    all ??= compile(make, 'all');
    try {
      limited(all, value, DETAIL_MS);
    } catch {
      return undefined;
    }
    const { errors } = all;
    all.errors = null;
    return errors ?? undefined;
  };

  const refuse = (value: unknown, fast: Validator): Checked<unknown> => {
    const found = fast.errors ?? [];
    // The errors contain the value: release it now, not at the next failure.
    fast.errors = null;
    const known = (isLarge(value) ? undefined : everyError(value)) ?? found;
    // The last error belongs to the keyword that contains all others.
    const errors = known.length > MAX_ERRORS ? known.slice(-1) : known;
    return { ok: false, problems: ajvProblems(errors, value, guarded) };
  };

  const check = (value: unknown): Checked<unknown> | Promise<Checked<unknown>> => {
    if (first === undefined) {
      const make = validatorMaker();
      if (make === undefined) return loadAjv().then(() => check(value));
      first = compile(make, 'first');
      isSlow = mayTakeLong(schemaTree(guarded));
    }
    let fits: boolean;
    try {
      fits = limited(first, value, CHECK_MS);
    } catch (error) {
      return { ok: false, problems: [cannotJudge(error, value)] };
    }
    return fits ? { ok: true, value } : refuse(value, first);
  };
  return { json, check: quick ? acceptingBy(quick, check) : check };
}

/**
 * Converts an exception of generated code into a problem. Generated code calls no author's code, so the value is the
 * cause: a recursive schema follows a hostile value until the stack overflows, or a comparison (`uniqueItems`, `const`,
 * `enum`) calls a `valueOf` that is data.
 */
function cannotJudge(error: unknown, value: unknown): Problem {
  const got = describe(value);
  if (error instanceof RangeError) return { path: '', expected: 'a value with less nesting', got };
  if (error instanceof TooLong)
    return { path: '', expected: `a value that can be checked within ${durationOf(CHECK_MS)}`, got };
  if (error instanceof TypeError) return { path: '', expected: 'no "valueOf" or "toString" in it', got };
  throw error;
}

function isLarge(value: unknown): boolean {
  const queue = [value];
  let parts = 0;
  while (queue.length > 0) {
    const next = queue.pop();
    if (typeof next !== 'object' || next === null) continue;
    // Count first: spreading an array of millions would have the cost that this function avoids.
    parts += Array.isArray(next) ? next.length : Object.keys(next).length;
    if (parts > DETAIL_LIMIT) return true;
    for (const part of Object.values(next)) queue.push(part);
  }
  return false;
}
