/** Counts the open exchanges of each principal, and limits its request rate. */
import { Quota } from '../../quota.ts';
import { TokenBucket } from '../../token-bucket.ts';

export interface PrincipalLoadLimits {
  readonly maxExchanges: number;
  readonly maxExchangesPerPrincipal: number;
  readonly rate: { readonly perSecond: number; readonly burst: number } | undefined;
}

/** The reason for a rejection, with the milliseconds after which a retry makes sense. */
export interface LoadExcess {
  /** The option that sets the limit. */
  readonly option: string;
  readonly message: string;
  readonly retryMs: number;
}

/** Maximum number of buckets. Above it, full buckets are dropped. */
const MAX_BUCKETS = 10_000;

export class PrincipalLoad {
  readonly #limits: PrincipalLoadLimits;
  readonly #exchanges: Quota;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(limits: PrincipalLoadLimits) {
    this.#limits = limits;
    const { maxExchanges: max, maxExchangesPerPrincipal } = limits;
    this.#exchanges = new Quota({
      what: 'exchanges open',
      max,
      option: 'http.maxExchanges',
      perPrincipal: { max: maxExchangesPerPrincipal, option: 'http.maxExchangesPerPrincipal' },
    });
  }

  /** @param who the principal, or the key that distinguishes anonymous clients */
  tooOften(who: string, now: number): LoadExcess | undefined {
    const { rate } = this.#limits;
    if (!rate) return undefined;
    let bucket = this.#buckets.get(who);
    if (!bucket) {
      if (this.#buckets.size >= MAX_BUCKETS) this.#forget((rate.burst / rate.perSecond) * 1_000, now);
      bucket = new TokenBucket(rate.perSecond, rate.burst, now);
      this.#buckets.set(who, bucket);
    }
    const retryMs = bucket.take(now);
    if (retryMs === 0) return undefined;
    const message = `rate limit exceeded: ${rate.perSecond} requests a second, ${rate.burst} at once (http.rate). Send requests less often`;
    return { option: 'http.rate', message, retryMs };
  }

  /** Counts one more exchange, unless the limit is reached. */
  begin(principal: string): LoadExcess | undefined {
    const excess = this.#exchanges.excess(principal);
    if (excess)
      return { option: excess.option, message: `${excess.message}. Close one, or wait for a response`, retryMs: 1_000 };
    this.#exchanges.add(principal);
    return undefined;
  }

  end(principal: string): void {
    this.#exchanges.remove(principal);
  }

  #forget(refillMs: number, now: number): void {
    for (const [who, bucket] of this.#buckets) if (now - bucket.usedAt >= refillMs) this.#buckets.delete(who);
    // All buckets are in use. One client too many is better than unlimited memory.
    if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
  }
}
