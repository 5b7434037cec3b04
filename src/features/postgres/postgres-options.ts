/** The options of a store in a PostgreSQL database, with their defaults and checks. */
import { describe } from '../../core/protocol/json.ts';
import { resolveStoreOptions, STORE_LIMITS, type StoreLimits } from '../../core/store/store-limits.ts';

export interface PostgresOptions extends StoreLimits {
  /** The schema that contains the tables; it is created if it does not exist. Lower-case letters, digits and `_`. */
  readonly schema: string;
  /**
   * The URL for the connections that write and that hold the locks, if `url` leads through a transaction pooler such as
   * PgBouncer: one that leads to the database itself, or through a pooler in session mode. Default: `url`.
   */
  readonly session: string | undefined;
  /** Number of connections that read. One more connection writes. */
  readonly readers: number;
  /** Milliseconds in which the database must accept a connection. */
  readonly connectMs: number;
  /** Milliseconds for which calls wait while the database is away; later they are rejected with `busy`. */
  readonly outageMs: number;
}

const DEFAULT_OPTIONS: PostgresOptions = {
  ...STORE_LIMITS,
  schema: 'troupe',
  session: undefined,
  readers: 2,
  connectMs: 5_000,
  outageMs: 2_000,
};

/** Longer names would be cut by PostgreSQL, which has 63 bytes for a name. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;

/** Merges the options with the defaults. @throws {TypeError | RangeError} for an unknown or invalid option */
export function resolvePostgresOptions(given: Partial<PostgresOptions>): PostgresOptions {
  const options = resolveStoreOptions('postgres', DEFAULT_OPTIONS, given);
  if (typeof options.schema !== 'string' || !SCHEMA.test(options.schema))
    throw new TypeError(
      `postgres: schema: expected lower-case letters, digits and _, at most 63, got ${describe(options.schema)}`,
    );
  return options;
}
