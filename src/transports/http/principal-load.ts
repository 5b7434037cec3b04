/** Counts the open exchanges of each principal, and limits its request rate. */
import type { Clock } from '../../clock.ts';
import { Quota } from '../../quota.ts';
import { TokenBuckets } from '../../token-bucket.ts';
import type { LoadExcess } from './http-authenticator.ts';
import type { NodeEntry } from './other-nodes.ts';
import { SharedRate } from './shared-rate.ts';

export interface PrincipalLoadLimits {
  readonly maxExchanges: number;
  readonly maxExchangesPerPrincipal: number;
  readonly rate: { readonly perSecond: number; readonly burst: number } | undefined;
}

export class PrincipalLoad {
  readonly #limits: PrincipalLoadLimits;
  readonly #exchanges: Quota;
  readonly #rate: TokenBuckets | undefined;
  /** The rate of all nodes together; undefined without a cluster. */
  #shared: SharedRate | undefined;

  constructor(limits: PrincipalLoadLimits) {
    this.#limits = limits;
    this.#rate = limits.rate && new TokenBuckets(limits.rate);
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
    const rate = this.#rate;
    if (!rate) return undefined;
    const retryMs = rate.of(who, now).take(now);
    if (retryMs === 0) {
      this.#shared?.spend(who);
      return undefined;
    }
    const message = `rate limit exceeded: ${rate.perSecond} requests a second, ${rate.burst} at once (http.rate). Send requests less often`;
    return { option: 'http.rate', message, retryMs };
  }

  /** Counts the rate together with the other nodes from now on. */
  share(nodes: NodeEntry, endpoint: number, clock: Clock): void {
    const { rate } = this.#limits;
    if (rate && this.#rate)
      this.#shared = new SharedRate({ nodes, endpoint, clock, own: this.#rate, all: new TokenBuckets(rate) });
  }

  /** A report about the rate from another node. */
  rated(...report: Parameters<SharedRate['receive']>): void {
    this.#shared?.receive(...report);
  }

  stop(): void {
    this.#shared?.end();
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
}
