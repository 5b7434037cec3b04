/** The contract of a compiled schema: the JSON that the registry shows, and the check that the executor calls. */
import type { JsonObject } from '../protocol/json.ts';

/** One reason why a value does not fit: the place, the expectation, the received value. */
export interface Problem {
  /** Path from the root of the value, such as `user.tags[2]`; empty for the root itself. */
  readonly path: string;
  /** The expectation, such as `integer >= 1` or the validation library's own message. */
  readonly expected: string;
  /** The received value, such as `string "abc"` or `nothing`. */
  readonly got: string;
  /** The validation library's own message, if a library checked the value. Reports show it in place of `expected`. */
  readonly message?: string;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A schema that was checked and compiled once, at registration. */
export interface CompiledSchema<T = unknown> {
  /** The JSON Schema for clients. Its dialect is 2020-12 unless `$schema` names draft-07. */
  readonly json: JsonObject;
  /** Checks a value. Libraries with asynchronous rules return a promise. Never throws for a value that does not fit. */
  check(value: unknown): Checked<T> | Promise<Checked<T>>;
}
