/** Counts what each principal has open, and how often it asks. */
import { TokenBucket } from './rate.ts';

export interface TallyLimits {
  readonly maxExchanges: number;
  readonly maxExchangesPerPrincipal: number;
  readonly rate: { readonly perSecond: number; readonly burst: number } | undefined;
}

/** Why somebody is refused, with milliseconds after which asking again makes sense. */
export interface Excess {
  readonly message: string;
  readonly retryMs: number;
}

/** Who a client is that nobody asked. */
export const ANONYMOUS = 'anonymous';
/** Most buckets kept; above it, those that are full again are forgotten. */
const MAX_BUCKETS = 10_000;

export class Tally {
  readonly #limits: TallyLimits;
  readonly #open = new Map<string, number>();
  readonly #buckets = new Map<string, TokenBucket>();
  #all = 0;

  constructor(limits: TallyLimits) {
    this.#limits = limits;
  }

  /** @param who the principal, or what tells anonymous clients apart */
  tooOften(who: string, now: number): Excess | undefined {
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
    const message = `more than ${rate.perSecond} requests a second, and ${rate.burst} at once: ask less often (the server's option is http.rate)`;
    return { message, retryMs };
  }

  /** Counts one more exchange, unless there are too many. */
  begin(principal: string): Excess | undefined {
    const { maxExchanges, maxExchangesPerPrincipal } = this.#limits;
    if (this.#all >= maxExchanges)
      return excess(`${this.#all} exchanges are open, which is the limit of this server`, 'maxExchanges');
    if (principal !== ANONYMOUS) {
      const own = this.#open.get(principal) ?? 0;
      if (own >= maxExchangesPerPrincipal)
        return excess(`this principal has ${own} exchanges open, which is its limit`, 'maxExchangesPerPrincipal');
      this.#open.set(principal, own + 1);
    }
    this.#all += 1;
    return undefined;
  }

  end(principal: string): void {
    this.#all -= 1;
    if (principal === ANONYMOUS) return;
    const left = (this.#open.get(principal) ?? 0) - 1;
    if (left > 0) this.#open.set(principal, left);
    else this.#open.delete(principal);
  }

  #forget(refillMs: number, now: number): void {
    for (const [who, bucket] of this.#buckets) if (now - bucket.usedAt >= refillMs) this.#buckets.delete(who);
    // All of them are in use: rather one client too often than memory without end.
    if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
  }
}

function excess(what: string, option: string): Excess {
  return { message: `${what}: end one, or wait for an answer (the server's option is http.${option})`, retryMs: 1_000 };
}
