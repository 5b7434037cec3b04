/** The links of a node, from its own view: the other nodes, and the events of all links. Types only. */
import type { LinkedExchange, LinkNews } from '../../../core/http/other-nodes.ts';

/** Another node, and the address of its link (`10.0.0.5:7400`). */
export interface LinkPeer {
  readonly node: string;
  readonly address: string;
}

/** Receives the events of all links. */
export interface LinkListener {
  /** True if this node exists and is not fenced, by the last read of the database. */
  knows(node: string): boolean | Promise<boolean>;
  exchange(exchange: LinkedExchange): void;
  news(from: string, news: LinkNews): void;
  /** A link to this node is ready: news from before may be lost. */
  opened(node: string): void;
  /** A link to this node has closed or cannot be opened. It may have died. */
  closed(node: string): void;
  /** Too many news waited for this node, or one was too long: some were discarded. */
  dropped(node: string): void;
}
