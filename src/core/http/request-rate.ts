/** Limits the request rate of each principal, at this node or together with the other nodes. */
import type { Clock } from '../kernel/clock.ts';
import { TokenBuckets } from '../kernel/token-bucket.ts';
import type { LoadExcess } from './http-authenticator.ts';
import type { HttpOptions } from './http-options.ts';
import type { NodeEntry } from './other-nodes.ts';
import { SharedRate } from './shared-rate.ts';

export class RequestRate {
  readonly #limit: NonNullable<HttpOptions['rate']>;
  readonly #own: TokenBuckets;
  /** The rate of all nodes together; undefined without a cluster. */
  #shared: SharedRate | undefined;

  constructor(limit: NonNullable<HttpOptions['rate']>) {
    this.#limit = limit;
    this.#own = new TokenBuckets(limit);
  }

  /** @param who the principal, or the key that distinguishes anonymous clients */
  tooOften(who: string, now: number): LoadExcess | undefined {
    const retryMs = this.#own.of(who, now).take(now);
    if (retryMs === 0) {
      this.#shared?.spend(who);
      return undefined;
    }
    const { perSecond, burst } = this.#limit;
    const message = `rate limit exceeded: ${perSecond} requests a second, ${burst} at once (http.rate). Send requests less often`;
    return { option: 'http.rate', message, retryMs };
  }

  /** Counts the rate together with the other nodes from now on. */
  share(nodes: NodeEntry, endpoint: number, clock: Clock): void {
    this.#shared = new SharedRate({ nodes, endpoint, clock, own: this.#own, all: new TokenBuckets(this.#limit) });
  }

  /** A report about the rate from another node. */
  rated(...report: Parameters<SharedRate['receive']>): void {
    this.#shared?.receive(...report);
  }

  stop(): void {
    this.#shared?.end();
  }
}
