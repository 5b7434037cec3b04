/** The options of a store in a file, with their defaults and checks. */
import { resolveStoreOptions, STORE_LIMITS, type StoreLimits } from '../../core/store/store-limits.ts';

export interface SqliteOptions extends StoreLimits {
  /** Maximum size of the file, in bytes. Beyond it, batches are rejected with `full` until space is freed. */
  readonly maxBytes: number;
}

const DEFAULT_OPTIONS: SqliteOptions = { ...STORE_LIMITS, maxBytes: 4 * 1024 ** 3 };

/** Below this, SQLite's own pages leave no space for data. */
const LEAST_BYTES = 256 * 1024;

/** Merges the options with the defaults. @throws {TypeError | RangeError} for an unknown or invalid option */
export function resolveSqliteOptions(path: string, given: Partial<SqliteOptions>): SqliteOptions {
  if (typeof path !== 'string' || path === '' || path === ':memory:')
    throw new TypeError(`sqlite: expected the path of a file, got "${path}". To store in memory, omit the option`);
  const options = resolveStoreOptions('sqlite', DEFAULT_OPTIONS, given);
  if (options.maxBytes < LEAST_BYTES)
    throw new RangeError(`sqlite: maxBytes: expected at least ${LEAST_BYTES}, got ${options.maxBytes}`);
  return options;
}
