/** What the tests of links share: nodes without a server, whose exchanges the test answers by hand. */

import type {
  ForwardedExchange,
  Forwarding,
  LinkedExchange,
  LinkFailure,
  LinkNews,
} from '../../../../src/core/http/other-nodes.ts';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import type { LinkListener } from '../../../../src/features/cluster/link/link-port.ts';
import { type LinkOptions, Links } from '../../../../src/features/cluster/link/links.ts';
import { type PendingArrival, wait } from '../../../../src/testing/arrivals.ts';
import { HANG_MS } from '../../../harness/wait.ts';

export const SECRET = 'a secret of the cluster that has at least 32 bytes';

/** Values that come one after the other, each taken once. */
export class Arrivals<T> {
  readonly all: T[] = [];
  readonly #what: string;
  #taken = 0;
  #waiting: PendingArrival<T> | undefined;

  constructor(what: string) {
    this.#what = what;
  }

  readonly put = (value: T): void => {
    this.all.push(value);
    if (!this.#waiting) return;
    this.#taken += 1;
    this.#waiting.settle(value);
    this.#waiting = undefined;
  };

  next(): Promise<T> {
    if (this.#taken < this.all.length) {
      this.#taken += 1;
      return Promise.resolve(this.all[this.#taken - 1] as T);
    }
    this.#waiting = wait<T>({ what: this.#what, ms: HANG_MS, arrived: () => `${this.all.length} came before` });
    return this.#waiting.promise;
  }
}

interface NodeOptions {
  readonly clock?: Clock;
  readonly maxExchanges?: number;
  /** Serves each exchange; by default the test does. */
  readonly serve?: (exchange: LinkedExchange) => void;
}

/** One node: its links, and what they report. */
export interface LinkedNode {
  readonly id: string;
  readonly address: string;
  readonly links: Links;
  readonly exchanges: Arrivals<LinkedExchange>;
  readonly news: Arrivals<{ readonly from: string; readonly news: LinkNews }>;
  readonly opened: Arrivals<string>;
  readonly closed: Arrivals<string>;
  /** The nodes for which news were discarded. */
  readonly dropped: Arrivals<string>;
  /** The ids that it takes for nodes; every id before it is set. */
  known: ReadonlySet<string> | undefined;
}

export async function linkedNode(
  id: string,
  { clock = systemClock, maxExchanges = 4_096, serve, ...options }: Partial<LinkOptions> & NodeOptions = {},
): Promise<LinkedNode> {
  const exchanges = new Arrivals<LinkedExchange>('an exchange from another node');
  const news = new Arrivals<{ readonly from: string; readonly news: LinkNews }>('news from another node');
  const opened = new Arrivals<string>('a link that opens');
  const closed = new Arrivals<string>('a link that closes');
  const dropped = new Arrivals<string>('discarded news');
  const listener: LinkListener = {
    knows: (other) => node.known?.has(other) ?? true,
    exchange(each) {
      serve?.(each);
      exchanges.put(each);
    },
    news: (from, each) => news.put({ from, news: each }),
    opened: opened.put,
    closed: closed.put,
    dropped: dropped.put,
  };
  const links = new Links(
    { listen: '127.0.0.1:0', secret: SECRET, ...options },
    { clock, maxMessageBytes: 4 * 1024 * 1024, maxExchanges, listener, log: () => {} },
  );
  const address = await links.open();
  const node: LinkedNode = { id, address, links, exchanges, news, opened, closed, dropped, known: undefined };
  links.join(id);
  return node;
}

/** Links nodes with each other, and waits until each reaches the others. */
export async function linked(...nodes: readonly LinkedNode[]): Promise<void> {
  for (const node of nodes)
    node.links.peers(nodes.flatMap(({ id, address }) => (id === node.id ? [] : { node: id, address })));
  for (const node of nodes) for (let other = 1; other < nodes.length; other += 1) await node.opened.next();
}

export const exchange = (more: Partial<ForwardedExchange> = {}): ForwardedExchange => ({
  endpoint: 0,
  method: 'POST',
  url: '/mcp',
  headers: { 'content-type': 'application/json' },
  auth: undefined,
  remoteAddress: '127.0.0.1',
  cell: 7,
  deadlineMs: 1_000,
  text: '{}',
  ...more,
});

export interface Answered {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly failure: LinkFailure | undefined;
}

/** A forwarded exchange with its response, as far as it has come. */
export interface Sent {
  readonly forwarding: Forwarding;
  readonly text: () => string;
  readonly done: Promise<Answered>;
}

/** @param reads false: the client reads no text */
export function forward(from: LinkedNode, to: LinkedNode, what: ForwardedExchange, reads = true): Sent {
  const waiting = wait<Answered>({ what: 'the response', ms: HANG_MS, arrived: () => text });
  let [status, headers, text]: [number | undefined, Readonly<Record<string, unknown>>, string] = [undefined, {}, ''];
  const settle = (failure?: LinkFailure): void => waiting.settle({ status, headers, text, failure });
  const forwarding = from.links.forward(to.id, what, {
    whole(...answer) {
      [status, headers, text = ''] = answer;
      settle();
    },
    begun(...answer) {
      [status, headers] = answer;
    },
    text(more) {
      text += more;
      return reads;
    },
    ended: () => settle(),
    failed: settle,
  });
  return { forwarding, text: () => text, done: waiting.promise };
}
