/** The other nodes of a cluster, as an endpoint uses them: one node forwards an exchange to another, or tells it of a change. Types only. */
import type { Auth } from '../messages/auth.ts';
import type { HopRecords } from '../messages/hop-records.ts';
import type { RemoteChange } from '../messages/remote-change.ts';
import type { Headers, HttpRequest } from './http-message.ts';

/** One exchange on its way to the node that owns its cell. It never contains a credential of the client. */
export interface ForwardedExchange {
  /** The number of the endpoint that received it: every node opens the same endpoints in the same order. */
  readonly endpoint: number;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** The headers that the endpoint and the core read, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The caller whom the entry has authenticated; undefined for an anonymous one. */
  readonly auth: Auth | undefined;
  readonly remoteAddress: string | undefined;
  /** The cell by which the entry has chosen the owner. */
  readonly cell: number;
  /** Milliseconds that the entry waits for the beginning of the response. */
  readonly deadlineMs: number;
  /** The body; empty for a GET and a DELETE. */
  readonly text: string;
}

/**
 * The end of an exchange that no response has ended: `unreachable` (nothing was sent), `lost` (the link closed before a
 * response), `not mine` (the node does not own the cell), `cut` (the link closed within a response), `full` (the node has
 * too many exchanges).
 */
export type LinkFailure = 'unreachable' | 'lost' | 'not mine' | 'cut' | 'full';

/** Receives the response to a forwarded exchange. One of `whole`, `ended` and `failed` is the last call. */
export interface ForwardListener {
  whole(status: number, headers: Headers, body: string | undefined): void;
  begun(status: number, headers: Headers): void;
  /** @returns false if the client reads more slowly: `resume` continues */
  text(text: string): boolean;
  ended(): void;
  failed(failure: LinkFailure): void;
}

/** A forwarded exchange in flight. */
export interface Forwarding {
  /** The number of the exchange on its link, the same at both nodes; undefined if nothing was sent. */
  readonly number?: number | undefined;
  /** Asks for more text after `text` has returned false. */
  resume(): void;
  /** The client has disconnected: the owner learns that. */
  cancel(): void;
}

/** News for another node: delivered in order and at least once, also after a cut, as long as the node lives. */
export type LinkNews =
  /** The sender has listeners for these URIs, or has none any more. */
  | { readonly news: 'watch' | 'unwatch'; readonly topics: readonly string[] }
  | { readonly news: 'changed'; readonly changes: readonly RemoteChange[] }
  /** There were too many news to hold while the link was cut. */
  | { readonly news: 'missed' }
  /** The requests that an endpoint of the sender has admitted, by the key of the rate; and the tokens that are left. */
  | { readonly news: 'spent' | 'left'; readonly endpoint: number; readonly amounts: Readonly<Record<string, number>> };

export interface LinkPort {
  forward(node: string, exchange: ForwardedExchange, listener: ForwardListener): Forwarding;
  tell(node: string, news: LinkNews): void;
}

/** An exchange that has arrived from another node, as the endpoint serves it. */
export interface LinkedExchange extends HttpRequest {
  readonly from: string;
  readonly endpoint: number;
  readonly cell: number;
  readonly deadlineMs: number;
  notMine(): void;
}

/** The place of a cell: this node, another node, or none. */
export type CellPlace =
  | { readonly at: 'here' }
  | { readonly at: 'peer'; readonly peer: { readonly node: string } }
  | { readonly at: 'nobody' };

/** The other nodes, as the entry of an HTTP request uses them. */
export interface NodeEntry {
  readonly link: LinkPort;
  /** Milliseconds that a request waits until its cell has an owner that can be reached. */
  readonly waitMs: number;
  placeOf(cell: number): CellPlace;
  /** The cell of a text, the same at every node. */
  cellOf(text: string): number;
  /** Number of other nodes. */
  readonly others: number;
  /** Counts a request that this node serves because it owns the cell. @returns a function to call once, at its end */
  enter(cell: number): () => void;
  /** Finds an owner for a cell. @throws {Error} after this many milliseconds */
  settle(cell: number, deadlineMs: number): Promise<CellPlace>;
  /** Registers an endpoint for exchanges from other nodes. @returns its number */
  serve(endpoint: NodeEndpoint): number;
}

/** An endpoint of this node, as other nodes reach it. */
export interface NodeEndpoint {
  forwarded(exchange: LinkedExchange): void;
  /** The reports about the rate of the same endpoint at another node. */
  rated(from: string, news: Extract<LinkNews, { readonly news: 'spent' | 'left' }>): void;
}

/** The addition to the host of a transport in a cluster. Apart from `TransportHost`: authors of transports need none of it. */
export interface ClusteredHost {
  readonly nodes: NodeEntry;
  readonly hops: HopRecords;
}
