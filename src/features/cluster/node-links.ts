/** The links of a node, between the endpoints of its server and the other nodes. */

import type { LinkedExchange, LinkNews, NodeEndpoint, NodeEntry } from '../../core/http/other-nodes.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { CellChoice } from '../../core/kernel/ids.ts';
import type { RuntimeLog } from '../../core/kernel/operator-log.ts';
import type { LinkListener, LinkPeer } from './link/link-port.ts';
import { type LinkOptions, Links } from './link/links.ts';
import type { PlacedRequestsOptions } from './placed-requests.ts';
import type { RemoteChanges } from './remote-changes.ts';

/** The parts of a cluster that one node of it has. */
export interface ClusterParts {
  readonly cells: CellChoice & PlacedRequestsOptions['cells'];
  readonly links: NodeLinks;
}

interface NodeLinksOptions {
  readonly link: LinkOptions;
  /** The places of cells. */
  readonly cells: Pick<NodeEntry, 'cellOf' | 'placeOf' | 'enter' | 'settle'>;
  /** Decides about other nodes: those that are not fenced are known. */
  readonly members: Pick<LinkListener, 'knows' | 'closed'>;
  readonly clock: Clock;
  readonly log: RuntimeLog;
  readonly maxMessageBytes: number;
  /** The most exchanges on one link. */
  readonly maxExchanges: number;
  /** Milliseconds that a request waits until its cell has an owner that can be reached. */
  readonly waitMs: number;
}

export class NodeLinks implements NodeEntry, LinkListener {
  readonly link: Links;
  readonly waitMs: number;
  readonly #options: NodeLinksOptions;
  #changes: RemoteChanges | undefined;
  #peers: ReadonlySet<string> = new Set();
  readonly #endpoints: NodeEndpoint[] = [];

  constructor(options: NodeLinksOptions) {
    const { link, clock, log, maxMessageBytes, maxExchanges, waitMs } = options;
    this.#options = options;
    this.waitMs = waitMs;
    this.link = new Links(link, {
      ...{ clock, maxMessageBytes, maxExchanges, listener: this },
      log: (level, message) => log(level, message, { event: 'transport' }),
    });
  }

  /** Listens. @returns the address for other nodes */
  open(): Promise<string> {
    return this.link.open();
  }

  /** Takes part under this id. All links of an earlier id close. */
  join(self: string): void {
    this.link.join(self);
  }

  /** Closes all links. */
  leave(): void {
    this.link.leave();
  }

  close(): Promise<void> {
    return this.link.close();
  }

  placeOf(cell: number): ReturnType<NodeEntry['placeOf']> {
    return this.#options.cells.placeOf(cell);
  }

  cellOf(text: string): number {
    return this.#options.cells.cellOf(text);
  }

  /** Number of other nodes. */
  get others(): number {
    return this.#peers.size;
  }

  enter(cell: number): () => void {
    return this.#options.cells.enter(cell);
  }

  settle(cell: number, deadlineMs: number): ReturnType<NodeEntry['settle']> {
    return this.#options.cells.settle(cell, deadlineMs);
  }

  serve(endpoint: NodeEndpoint): number {
    return this.#endpoints.push(endpoint) - 1;
  }

  exchange(exchange: LinkedExchange): void {
    // `server.fetch` and `server.node` open at their first request. Until then the last endpoint serves their exchanges; the first has calls only.
    const endpoint = this.#endpoints[exchange.endpoint] ?? this.#endpoints.slice(1).at(-1);
    if (endpoint) endpoint.forwarded(exchange);
    // A node that is starting.
    else exchange.notMine();
  }

  /** True if this node and the other one have opened their links to each other. */
  reaches(node: string): boolean {
    return this.failure(node) === undefined;
  }

  failure(node: string): string | undefined {
    return this.link.failure(node);
  }

  knows(node: string): boolean | Promise<boolean> {
    return this.#options.members.knows(node);
  }

  closed(node: string): void {
    this.#options.members.closed(node);
  }

  opened(node: string): void {
    this.#changes?.opened(node);
  }

  dropped(node: string): void {
    this.#changes?.dropped(node);
  }

  news(from: string, news: LinkNews): void {
    if (news.news === 'spent' || news.news === 'left') this.#endpoints[news.endpoint]?.rated(from, news);
    else this.#changes?.news(from, news);
  }

  /** Passes on the changes of other nodes. */
  tellOf(changes: RemoteChanges): void {
    this.#changes = changes;
  }

  /** All other nodes that are not fenced, or owners of cells, have changed. */
  peers(peers: readonly LinkPeer[]): void {
    const nodes = new Set(peers.map(({ node }) => node));
    const gone = [...this.#peers].filter((node) => !nodes.has(node));
    this.#peers = nodes;
    this.link.peers(peers);
    for (const node of gone) this.#changes?.gone(node);
    this.#changes?.moved();
  }

  /** All other nodes that are not fenced. */
  get nodes(): Iterable<string> {
    return this.#peers;
  }
}
