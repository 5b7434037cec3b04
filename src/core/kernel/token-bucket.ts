/** Token buckets, which limit the rate of clients. They have no clock; callers pass the time. */

/**
 * Far below one token, and above the rounding error of the sums: a client that waited as long as announced is admitted.
 */
const ROUNDING = 1e-6;

/**
 * Starts with `burst` tokens and gains `perSecond` tokens a second up to that number.
 *
 * @param perSecond tokens a second, above 0; 0.1 is one every ten seconds
 * @param burst the maximum number of tokens, at least 1
 * @param now milliseconds of a monotonic clock
 * @throws {RangeError} for a number outside these limits
 * @example
 * const bucket = new TokenBucket(10, 20, clock.now());
 * const waitMs = bucket.take(clock.now());
 */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  constructor(perSecond: number, burst: number, now: number) {
    if (!Number.isFinite(perSecond) || perSecond <= 0)
      throw new RangeError(`rate.perSecond: expected a number above 0, got ${String(perSecond)}`);
    if (!Number.isFinite(burst) || burst < 1)
      throw new RangeError(`rate.burst: expected a number of at least 1, got ${String(burst)}`);
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#at = now;
  }

  /** Time of the last call, in milliseconds of the same clock. */
  get usedAt(): number {
    return this.#at;
  }

  /**
   * Takes tokens and returns 0. If there are too few, takes nothing and returns the whole milliseconds, at least 1,
   * until there are enough.
   *
   * @param now milliseconds of the same clock; a time before an earlier call's counts as that call's
   * @param tokens from 0 to the maximum number of tokens
   */
  take(now: number, tokens = 1): number {
    const waitMs = this.wait(now, tokens);
    if (waitMs === 0) this.#tokens -= tokens;
    return waitMs;
  }

  /** Subtracts tokens that were used elsewhere, also more than there are. @returns the rest, which may be below 0 */
  spend(now: number, tokens: number): number {
    this.#refill(now);
    this.#tokens -= tokens;
    return this.#tokens;
  }

  /** Lowers the number of tokens, if there are more. */
  lower(now: number, tokens: number): void {
    this.#refill(now);
    this.#tokens = Math.min(this.#tokens, tokens);
  }

  #refill(now: number): void {
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMs);
    this.#at = now;
  }

  /** The same without taking: the milliseconds until there are enough. */
  wait(now: number, tokens = 1): number {
    this.#refill(now);
    return this.#tokens < tokens - ROUNDING ? Math.ceil((tokens - this.#tokens) / this.#perMs) : 0;
  }
}

/** Maximum number of buckets of a table. Above it, full buckets are dropped. */
const MAX_BUCKETS = 10_000;

/** A rate for each of many clients: their buckets by key. */
export class TokenBuckets {
  readonly perSecond: number;
  readonly burst: number;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor({ perSecond, burst }: { readonly perSecond: number; readonly burst: number }) {
    this.perSecond = perSecond;
    this.burst = burst;
  }

  /** The bucket of a client, full if it has none. */
  of(key: string, now: number): TokenBucket {
    let bucket = this.#buckets.get(key);
    if (!bucket) {
      if (this.#buckets.size >= MAX_BUCKETS) this.#forget(now);
      bucket = new TokenBucket(this.perSecond, this.burst, now);
      this.#buckets.set(key, bucket);
    }
    return bucket;
  }

  #forget(now: number): void {
    const refillMs = (this.burst / this.perSecond) * 1_000;
    for (const [key, bucket] of this.#buckets) if (now - bucket.usedAt >= refillMs) this.#buckets.delete(key);
    // All buckets are in use. One client too many is better than unlimited memory.
    if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
  }
}
