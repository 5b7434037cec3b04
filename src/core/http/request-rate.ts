/** Limits the request rate of each principal, at this node or together with the other nodes. */
import type { Clock, Timer } from '../kernel/clock.ts';
import { TokenBuckets } from '../kernel/token-bucket.ts';
import type { LoadExcess } from './http-authenticator.ts';
import type { HttpOptions } from './http-options.ts';
import type { LinkNews, NodeEntry } from './other-nodes.ts';

/** Milliseconds between two reports of a node. */
const REPORT_MS = 100;

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

interface SharedRateOptions {
  readonly nodes: NodeEntry;
  /** The number of the endpoint. */
  readonly endpoint: number;
  readonly clock: Clock;
  /** The buckets by which this node admits. */
  readonly own: TokenBuckets;
  /** The buckets of the keys whose cells this node owns, for all nodes. */
  readonly all: TokenBuckets;
}

/**
 * The rate of an endpoint across nodes: each node admits requests at once, and the owner of a key subtracts all of them from
 * one bucket. Its answer lowers the buckets of the nodes, which repay by waiting.
 */
class SharedRate {
  readonly #options: SharedRateOptions;
  /** The requests that were admitted since the last report, by key. */
  #spent = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(options: SharedRateOptions) {
    this.#options = options;
  }

  /** Counts an admitted request. */
  spend(key: string): void {
    this.#spent.set(key, (this.#spent.get(key) ?? 0) + 1);
    this.#timer ??= this.#options.clock.after(REPORT_MS, () => this.#report());
  }

  receive(from: string, news: Extract<LinkNews, { readonly news: 'spent' | 'left' }>): void {
    if (news.news === 'left') return this.#lower(news.amounts);
    const { nodes, endpoint } = this.#options;
    nodes.link.tell(from, { news: 'left', endpoint, amounts: this.#subtract(news.amounts) });
  }

  end(): void {
    this.#timer?.cancel();
  }

  /** Reports to the owner of each key. While a key has none, each node admits by itself. */
  #report(): void {
    const { nodes, endpoint } = this.#options;
    // Maps: a principal may be called `__proto__`.
    const byOwner = new Map<string, Map<string, number>>();
    const own = new Map<string, number>();
    for (const [key, amount] of this.#spent) {
      const place = nodes.placeOf(nodes.cellOf(key));
      if (place.at === 'here') own.set(key, amount);
      if (place.at !== 'peer') continue;
      const amounts = byOwner.get(place.peer.node) ?? new Map<string, number>();
      byOwner.set(place.peer.node, amounts.set(key, amount));
    }
    this.#spent = new Map();
    this.#timer = undefined;
    this.#lower(this.#subtract(Object.fromEntries(own)));
    for (const [node, amounts] of byOwner)
      nodes.link.tell(node, { news: 'spent', endpoint, amounts: Object.fromEntries(amounts) });
  }

  /** @returns the tokens that each key has left, below 0 if the nodes have admitted too many requests together */
  #subtract(amounts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
    const { all, clock } = this.#options;
    const now = clock.now();
    return Object.fromEntries(
      Object.entries(amounts).map(([key, amount]) => [key, all.of(key, now).spend(now, amount)]),
    );
  }

  #lower(amounts: Readonly<Record<string, number>>): void {
    const { clock, nodes, own } = this.#options;
    const now = clock.now();
    const shares = 1 + nodes.others;
    for (const [key, left] of Object.entries(amounts)) own.of(key, now).lower(now, left > 0 ? left / shares : left);
  }
}
