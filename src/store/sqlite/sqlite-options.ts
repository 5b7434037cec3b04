/** What a store in a file may be told, and what holds when it is not. */
import { LONGEST_TIMER_MS } from '../../clock.ts';

/** Bounds of a store in a file. Each is a whole number of at least 1, and each refusal names the bound that it comes from. */
export interface SqliteOptions {
  /** The size that the file may grow to, in bytes: then batches are refused with `full`, until something is let go. */
  readonly maxBytes: number;
  /** Most events kept of one stream: the oldest give way. Of an actor's own history only those that its last snapshot covers do. */
  readonly maxStreamEvents: number;
  /** Most bytes of events kept for one actor, in all its streams; the oldest give way, likewise. */
  readonly maxActorBytes: number;
  /** Most streams of one actor that are remembered when all their events are gone. */
  readonly maxActorStreams: number;
  /** Most replies kept for one actor; those that expire first give way, at the next sweep. */
  readonly maxActorReplies: number;
  /** Most replies kept in all; those that expire first give way, at the next sweep. */
  readonly maxReplies: number;
  /** Most dead letters; the oldest give way, at the next sweep. */
  readonly maxDeadLetters: number;
  /** Most calls that wait for the thread of the store; the next is refused with `busy`. */
  readonly maxWaiting: number;
  /** Most that waits to be written, in characters of data; the next batch is refused with `busy`. */
  readonly maxWaitingLength: number;
  /** Most writes that become durable in one transaction, but for one batch that has more. */
  readonly maxGroupWrites: number;
  /** Likewise, in characters of data. */
  readonly maxGroupLength: number;
  /** Milliseconds to wait at the start for another process that has the file. */
  readonly lockMs: number;
  /** Milliseconds until a thread that does not answer counts as dead. */
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
  // With syncs of 200 ms and 10,000 events a second, a fifth of that comes while one is made durable.
  maxGroupWrites: 10_000,
  maxGroupLength: 4 * 1024 ** 2,
  lockMs: 5_000,
  answerMs: 30_000,
};

/** Below this, SQLite's own pages leave no room for anything. */
const LEAST_BYTES = 256 * 1024;

/** The options that hold. @throws {TypeError | RangeError} for one that is none, or that does not fit */
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
