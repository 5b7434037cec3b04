/** The options of a store in a file, with their defaults and checks. */
import { LONGEST_TIMER_MS } from '../../clock.ts';

/** Limits of a store in a file. Each is a whole number of at least 1, and each rejection names its limit. */
export interface SqliteOptions {
  /** Maximum size of the file, in bytes. Beyond it, batches are rejected with `full` until space is freed. */
  readonly maxBytes: number;
  /**
   * Maximum number of events in one stream; the oldest are deleted. Of an actor's own history, only events that its
   * last snapshot covers are deleted.
   */
  readonly maxStreamEvents: number;
  /**
   * Maximum number of bytes of events for one actor, in all its streams; the oldest are deleted, under the same
   * condition.
   */
  readonly maxActorBytes: number;
  /** Maximum number of streams of one actor that remain after all their events are deleted. */
  readonly maxActorStreams: number;
  /** Maximum number of replies for one actor; those that expire first are deleted at the next sweep. */
  readonly maxActorReplies: number;
  /** Maximum number of replies in all; those that expire first are deleted at the next sweep. */
  readonly maxReplies: number;
  /** Maximum number of dead letters; the oldest are deleted at the next sweep. */
  readonly maxDeadLetters: number;
  /** Maximum number of calls that wait for the store's thread; further calls are rejected with `busy`. */
  readonly maxWaiting: number;
  /** Maximum amount of data that waits to be written, in characters; further batches are rejected with `busy`. */
  readonly maxWaitingLength: number;
  /** Maximum number of writes in one transaction, except for a single batch with more. */
  readonly maxGroupWrites: number;
  /** The same limit in characters of data. */
  readonly maxGroupLength: number;
  /** Milliseconds to wait at the start for another process that holds the file. */
  readonly lockMs: number;
  /** Milliseconds after which a thread that does not respond counts as dead. */
  readonly answerMs: number;
}

const DEFAULT_OPTIONS: SqliteOptions = {
  maxBytes: 4 * 1024 ** 3,
  maxStreamEvents: 1_000,
  maxActorBytes: 16 * 1024 ** 2,
  maxActorStreams: 1_000,
  maxActorReplies: 256,
  maxReplies: 1_000_000,
  maxDeadLetters: 1_000,
  maxWaiting: 20_000,
  maxWaitingLength: 64 * 1024 ** 2,
  // With syncs of 200 ms and 10,000 events a second, a fifth of this arrives during one sync.
  maxGroupWrites: 10_000,
  maxGroupLength: 4 * 1024 ** 2,
  lockMs: 5_000,
  answerMs: 30_000,
};

/** Below this, SQLite's own pages leave no space for data. */
const LEAST_BYTES = 256 * 1024;

/** Merges the options with the defaults. @throws {TypeError | RangeError} for an unknown or invalid option */
export function resolveSqliteOptions(path: string, given: Partial<SqliteOptions>): SqliteOptions {
  if (typeof path !== 'string' || path === '' || path === ':memory:')
    throw new TypeError(`sqlite: expected the path of a file, got "${path}". To store in memory, omit the option`);
  for (const [name, value] of Object.entries(given)) {
    if (!(name in DEFAULT_OPTIONS))
      throw new TypeError(`sqlite: ${name}: no such option; there are ${Object.keys(DEFAULT_OPTIONS).join(', ')}`);
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RangeError(`sqlite: ${name}: expected a whole number of at least 1, got ${String(value)}`);
    if (name.endsWith('Ms') && value > LONGEST_TIMER_MS)
      throw new RangeError(`sqlite: ${name}: expected at most ${LONGEST_TIMER_MS} milliseconds, got ${value}`);
  }
  const options = { ...DEFAULT_OPTIONS, ...given };
  if (options.maxBytes < LEAST_BYTES)
    throw new RangeError(`sqlite: maxBytes: expected at least ${LEAST_BYTES}, got ${options.maxBytes}`);
  return options;
}
