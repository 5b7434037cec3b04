/** The contract of a compiled schema: what the registry shows of it, and how the executor checks a value with it. */
import type { JsonObject } from '../protocol/json.ts';

/** One reason why a value does not fit: where, what was expected, what came. */
export interface Problem {
  /** Path from the root of the value, such as `user.tags[2]`; empty for the root itself. */
  readonly path: string;
  /** What was expected, such as `integer >= 1` or the validation library's own message. */
  readonly expected: string;
  /** What came, such as `string "abc"` or `nothing`. */
  readonly got: string;
  /** The validation library's own sentence, where a library checked. Reports show it in place of `expected`. */
  readonly message?: string;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A schema that was checked and compiled once, at registration. */
export interface CompiledSchema<T = unknown> {
  /** The JSON Schema that clients are shown. Its dialect is 2020-12 unless `$schema` says draft-07. */
  readonly json: JsonObject;
  /** Checks a value; libraries with asynchronous rules answer with a promise. Never throws for a value that does not fit. */
  check(value: unknown): Checked<T> | Promise<Checked<T>>;
}
