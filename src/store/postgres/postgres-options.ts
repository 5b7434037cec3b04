/** The options of a store in a PostgreSQL database, with their defaults and checks. */
import { LONGEST_TIMER_MS } from '../../clock.ts';
import { checkOptionNames } from '../../protocol/json.ts';

/** Limits of a store in a database. Each number is a whole number of at least 1, and each rejection names its limit. */
export interface PostgresOptions {
  /** The schema that contains the tables; it is created if it does not exist. Lower-case letters, digits and `_`. */
  readonly schema: string;
  /**
   * The URL for the connections that write and that hold the locks, if `url` leads through a transaction pooler such as
   * PgBouncer: one that leads to the database itself, or through a pooler in session mode. Default: `url`.
   */
  readonly session: string | undefined;
  /** Number of connections that read. One more connection writes. */
  readonly readers: number;
  /**
   * Maximum number of events in one stream; the oldest are deleted. Of an actor's own history, only events that its
   * last snapshot covers are deleted.
   */
  readonly maxStreamEvents: number;
  /**
   * Maximum number of characters of events for one actor, in all its streams; the oldest are deleted, under the same
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
  /** Maximum number of batches that wait for the database; further ones are rejected with `busy`. */
  readonly maxWaiting: number;
  /** Maximum amount of data that waits to be written, in characters; further batches are rejected with `busy`. */
  readonly maxWaitingLength: number;
  /** Maximum number of writes in one transaction, except for a single batch with more. */
  readonly maxGroupWrites: number;
  /** The same limit in characters of data. */
  readonly maxGroupLength: number;
  /** Milliseconds to wait at the start for the database, and for another process that has the store open. */
  readonly lockMs: number;
  /** Milliseconds in which the database must accept a connection. */
  readonly connectMs: number;
  /** Milliseconds for which calls wait while the database is away; later they are rejected with `busy`. */
  readonly outageMs: number;
  /** Milliseconds after which a connection that does not respond counts as lost. */
  readonly answerMs: number;
}

const DEFAULT_OPTIONS: PostgresOptions = {
  schema: 'troupe',
  session: undefined,
  readers: 2,
  maxStreamEvents: 1_000,
  maxActorBytes: 16 * 1024 ** 2,
  maxActorStreams: 1_000,
  maxActorReplies: 256,
  maxReplies: 1_000_000,
  maxDeadLetters: 1_000,
  maxWaiting: 20_000,
  maxWaitingLength: 64 * 1024 ** 2,
  maxGroupWrites: 10_000,
  maxGroupLength: 4 * 1024 ** 2,
  lockMs: 5_000,
  connectMs: 5_000,
  outageMs: 2_000,
  answerMs: 30_000,
};

const OPTIONS: ReadonlySet<string> = new Set(Object.keys(DEFAULT_OPTIONS));
/** Longer names would be cut by PostgreSQL, which has 63 bytes for a name. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;

/** Merges the options with the defaults. @throws {TypeError | RangeError} for an unknown or invalid option */
export function resolvePostgresOptions(given: Partial<PostgresOptions>): PostgresOptions {
  checkOptionNames('postgres: ', given, OPTIONS);
  const options = { ...DEFAULT_OPTIONS, ...given };
  for (const [name, value] of Object.entries(options)) {
    if (name === 'schema' || name === 'session') continue;
    if (!Number.isSafeInteger(value) || Number(value) < 1)
      throw new RangeError(`postgres: ${name}: expected a whole number of at least 1, got ${String(value)}`);
    if (name.endsWith('Ms') && Number(value) > LONGEST_TIMER_MS)
      throw new RangeError(
        `postgres: ${name}: expected at most ${LONGEST_TIMER_MS} milliseconds, got ${String(value)}`,
      );
  }
  if (!SCHEMA.test(options.schema))
    throw new TypeError(
      `postgres: schema: expected lower-case letters, digits and _, at most 63, got ${String(options.schema)}`,
    );
  return options;
}
