/** The limits of a store that keeps data beyond its process, with their defaults and the check of its options. */
import * as option from '../protocol/option-rows.ts';

/** Each is a whole number of at least 1, and each rejection names its limit. */
export interface StoreLimits {
  /**
   * Maximum number of events in one stream; the oldest are deleted. Of an actor's own history, only events that its
   * last snapshot covers are deleted.
   */
  readonly maxStreamEvents: number;
  /**
   * Maximum amount of events for one actor, in all its streams; the oldest are deleted, under the same condition. In
   * bytes in a file, in characters in a database.
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
  /** Maximum number of calls that wait for the store; further ones are rejected with `busy`. */
  readonly maxWaiting: number;
  /** Maximum amount of data that waits to be written, in characters; further batches are rejected with `busy`. */
  readonly maxWaitingLength: number;
  /** Maximum number of writes in one transaction, except for a single batch with more. */
  readonly maxGroupWrites: number;
  /** The same limit in characters of data. */
  readonly maxGroupLength: number;
  /** Milliseconds to wait at the start for the store, and for another process that has it open. */
  readonly lockMs: number;
  /** Milliseconds after which a thread or a connection that does not respond counts as lost. */
  readonly answerMs: number;
}

export const STORE_LIMITS: StoreLimits = {
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

/**
 * Merges options with their defaults.
 *
 * @param where the store that the message of an error names
 * @throws {TypeError | RangeError} for an unknown option, or a number that is out of its range
 */
export function resolveStoreOptions<T extends StoreLimits>(where: string, defaults: T, given: Partial<T>): T {
  option.check(`${where}: `, given, option.ofDefaults(defaults));
  return { ...defaults, ...given };
}
