/** Checks values by a plain JSON Schema: one bare compiled function for a value that fits, and a second look for one that does not. */
import { describe } from '../protocol/json.ts';
import { loadAjv, type MakeValidator, type Validator, type ValidatorError, validatorMaker } from './ajv.ts';
import { ajvProblems } from './ajv-problems.ts';
import { bounded, mayTakeLong, TooLong } from './bounded.ts';
import type { Checked, CompiledSchema, Problem } from './schema.ts';
import { type GuardedSchema, schemaTree } from './schema-guard.ts';

/**
 * Values with more parts than this get only their first problem reported: collecting every error of a hostile value
 * of millions of parts takes gigabytes.
 */
const DETAIL_LIMIT = 2_000;

/** Most errors that are made sense of. A recursive union reports each level once for each way to it: 2^n of them. */
const MAX_ERRORS = 2_000;

/** Longest that one check may hold the thread, and that the search for every problem of a misfit may, in milliseconds. */
export const CHECK_MS = 250;
const DETAIL_MS = 100;

/**
 * Compiles a guarded schema. Compiling takes 0.5 to 10 ms, so it waits for the first check; the very first check of the process
 * also waits for ajv itself, and answers with a promise.
 *
 * @param where begins the error if ajv, against all tests, cannot compile what the guard let pass
 */
export function compilePlain(guarded: GuardedSchema, where: string): CompiledSchema {
  const { json, dialect } = guarded;
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

  /** Every error; none where looking for them goes too deep or takes too long, which stopping at the first did not. */
  const everyError = (value: unknown, make: MakeValidator): readonly ValidatorError[] | undefined => {
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

  const refuse = (value: unknown, make: MakeValidator, fast: Validator): Checked<unknown> => {
    const found = fast.errors ?? [];
    // The errors hold the value: the validator must not keep it until its next failure.
    fast.errors = null;
    const known = (isLarge(value) ? undefined : everyError(value, make)) ?? found;
    // The last one is of the keyword that holds all the others.
    const errors = known.length > MAX_ERRORS ? known.slice(-1) : known;
    return { ok: false, problems: ajvProblems(errors, value, guarded) };
  };

  const check = (value: unknown): Checked<unknown> | Promise<Checked<unknown>> => {
    const make = validatorMaker();
    if (make === undefined) return loadAjv().then(() => check(value));
    if (first === undefined) {
      first = compile(make, 'first');
      isSlow = mayTakeLong(schemaTree(guarded));
    }
    let fits: boolean;
    try {
      fits = limited(first, value, CHECK_MS);
    } catch (error) {
      return { ok: false, problems: [cannotJudge(error, value)] };
    }
    return fits ? { ok: true, value } : refuse(value, make, first);
  };
  return { json, check };
}

/**
 * Generated code runs nothing of the author's, so what it throws is about the value: a recursive schema follows a hostile one down
 * until the stack ends, and comparing objects (`uniqueItems`, `const`, `enum`) calls a `valueOf` that may be data.
 */
function cannotJudge(error: unknown, value: unknown): Problem {
  const got = describe(value);
  if (error instanceof RangeError) return { path: '', expected: 'a value that is nested less deeply', got };
  if (error instanceof TooLong) return { path: '', expected: `a value that is checked within ${CHECK_MS} ms`, got };
  if (error instanceof TypeError) return { path: '', expected: 'no "valueOf" or "toString" in it', got };
  throw error;
}

function isLarge(value: unknown): boolean {
  const queue = [value];
  let parts = 0;
  while (queue.length > 0) {
    const next = queue.pop();
    if (typeof next !== 'object' || next === null) continue;
    // The length first: spreading an array of millions would be the very cost that this is here to avoid.
    parts += Array.isArray(next) ? next.length : Object.keys(next).length;
    if (parts > DETAIL_LIMIT) return true;
    for (const part of Object.values(next)) queue.push(part);
  }
  return false;
}
