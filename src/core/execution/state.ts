/** The state of a caller in a handler's context: `ctx.state`. Types only. */
import type { JsonValue } from '../protocol/json.ts';
import type { CompiledSchema } from '../schema/schema.ts';

/** A key with the schema of its value, from `defineState`. */
export interface StateKey<T = unknown> {
  /** The key under which the value is stored. */
  readonly key: string;
  readonly schema: CompiledSchema<T>;
}

export interface StateWriteOptions {
  /** Milliseconds until the value is absent again. Default: it stays as long as its scope. */
  readonly ttlMs?: number;
}

/** A stored value, without the value. */
export interface StateEntry {
  readonly key: string;
  /** Bytes of the key and of the value as JSON, in UTF-8. */
  readonly bytes: number;
  /** Milliseconds since 1970; undefined if it has no time of its own. */
  readonly expires: number | undefined;
}

/**
 * The values of one scope: JSON under texts. Operations of one process on a scope take effect in the order of the calls, those of
 * several nodes one after the other. A promise that resolves means that the value is stored.
 */
export interface State {
  /**
   * Reads a value.
   *
   * @param key from `defineState`, whose schema checks the stored value; or a text, whose value may be anything
   * @returns a copy of its own; undefined if nothing is stored
   * @throws {StateError} `stored` for a value that the schema rejects; `no caller`, `key`, `store`, `busy`, `ended`
   * @example const items = (await ctx.state.get(cart)) ?? [];
   */
  get<T>(key: StateKey<T>): Promise<T | undefined>;
  get(key: string): Promise<JsonValue | undefined>;
  /**
   * Stores a value in the place of the one before.
   *
   * @param value JSON; of a `StateKey`, what its schema accepts
   * @throws {StateError} `value` for a value that JSON cannot represent or the schema rejects; `limit`; as `get`
   * @example await ctx.state.set('code', '4711', { ttlMs: 600_000 });
   */
  set<T>(key: StateKey<T>, value: T, options?: StateWriteOptions): Promise<void>;
  set(key: string, value: unknown, options?: StateWriteOptions): Promise<void>;
  /** Deletes a value. @returns whether there was one @throws {StateError} as `get` */
  delete(key: StateKey | string): Promise<boolean>;
  /**
   * Changes a value so that no other change gets lost: if another call or node has changed it meanwhile, `change` runs again with
   * the newer value.
   *
   * @param change returns the new value; undefined deletes it. It is synchronous, and does nothing else, because it may run again
   * @returns the stored value
   * @throws {StateError} `conflict` after 16 attempts; as `set`. What `change` throws: nothing is stored then
   * @example const visits = await ctx.state.update(counter, (n = 0) => n + 1);
   */
  update<T>(
    key: StateKey<T>,
    change: (value: T | undefined) => T | undefined,
    options?: StateWriteOptions,
  ): Promise<T | undefined>;
  update(
    key: string,
    change: (value: JsonValue | undefined) => unknown,
    options?: StateWriteOptions,
  ): Promise<JsonValue | undefined>;
  /** Lists the keys that begin with a text, in the order of their UTF-16 code units. @throws {StateError} as `get` */
  list(prefix?: string): Promise<readonly StateEntry[]>;
  /** Deletes everything of the scope. @throws {StateError} as `get` */
  clear(): Promise<void>;
}

/** The state of the caller: of its principal; of its session if it is anonymous. */
export interface CallerState extends State {
  /** The scope of the methods; undefined for an anonymous caller without a session, whose calls all reject with `no caller`. */
  readonly scope: 'principal' | 'session' | undefined;
  /** The state of the session, which ends with it; undefined for a client without one. */
  readonly session: State | undefined;
}

/** The state of the caller of one request, which knows what is unfinished. */
export interface WatchedState extends CallerState {
  /** The operations that have not ended, such as `set("cart")`. */
  readonly unfinished: readonly string[];
  /** @throws {StateError} `no caller` if there is no scope */
  requireScope(): void;
}
