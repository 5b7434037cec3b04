/** The events between transports and the core on the bus. Types only. */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Auth } from './auth.ts';
import type { LeavingCells } from './cell-holder.ts';
import type { ClientFacts } from './client-facts.ts';
import type { ForgottenPrincipal } from './forgotten-principal.ts';
import type { Hop } from './hop-records.ts';
import type { SessionStorage } from './session-storage.ts';

/** Names one use of a transport: a pipe, a socket, an HTTP exchange. Unique within the process. */
export type ConnectionId = string;

/** The HTTP request of an exchange, without its body. */
export interface RequestHead {
  /** Its authenticated caller; undefined for an anonymous one. */
  readonly auth: Auth | undefined;
  /** A header by its name in lower case; the values of a repeated header joined. */
  header(name: string): string | undefined;
  /** True if a header occurs more than once, as far as is known. */
  repeats(name: string): boolean;
  /** The HTTP version of the request line, such as `1.1`; undefined for a request without one. */
  readonly version?: string | undefined;
  readonly remoteAddress?: string | undefined;
  /** The local address and port that the client connected to, if they are known. */
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  /** The entry that has forwarded it; undefined for a request of this node's own client. */
  readonly hop?: Hop | undefined;
}

/** One HTTP request and its response: messages arrive in the request, and their responses leave in the response. */
export interface Exchange {
  /** Unique within its connection. */
  readonly id: number;
  readonly principal: string;
  readonly incoming: RequestHead;
  /** False if the client accepts no event stream as a response. */
  readonly streams?: boolean;
  /** The id of the request in it; the inbound codec sets it. */
  request?: RequestId | undefined;
  /**
   * True if the store records a reply to a call in it: the response then waits until the reply is durable. The core
   * sets it.
   */
  storesReply?: boolean;
  /** True if running its request twice has the same effect as running it once. The core sets it. */
  repeatable?: boolean;
  /** The messages of an earlier run of its request, which ended with its process; undefined for a first run. */
  readonly earlier?: readonly string[] | undefined;
  /** True while a rule decides about its request: its response must not begin. The core sets it. */
  undecided?: boolean;
  /** The cell by which this node serves its request; undefined if any node may serve it, and without a cluster. */
  readonly cell?: number | undefined;
  /** The core has found the cell of its request, which this node owns. */
  enter?(cell: number): void;
  /** The scopes that its request needs, if it was rejected because it lacks some. The core sets it for the challenge. */
  neededScopes?: readonly string[] | undefined;
  /** The URL of the metadata that describes how to get a token (RFC 9728). */
  readonly resourceMetadata?: string | undefined;
}

/** The subject of an outbound message. stdio ignores it; HTTP routes by it. */
export type About =
  | {
      readonly kind: 'request';
      readonly id: RequestId;
      readonly exchange: Exchange | undefined;
      /** The inspection record of the message that carried it; 0 or absent without listeners. */
      readonly cause?: number;
      /** True if it has no end of its own, so that its response must be a stream. */
      readonly stays?: true;
    }
  | { readonly kind: 'session' }
  /** The whole connection, or one exchange. */
  | { readonly kind: 'connection'; readonly exchange: Exchange | undefined };

/** The slow reader: the whole connection, the responses of one exchange, or the session's stream. */
export type Reader = 'connection' | 'session' | Exchange;

/** Creates the bytes of one message, in pieces. Only transports that write bytes call it. */
export type Bytes = () => readonly Uint8Array[];

export interface ConnectionEvents {
  /**
   * A transport opened a connection. On a `shared` connection, any number of clients send messages, each with an
   * exchange: it has no session, and an `initialize` on it opens a separate connection.
   */
  'connection.opened': {
    readonly connection: ConnectionId;
    readonly transport: string;
    /** The principal of every message on it. Default: `anonymous`. */
    readonly principal?: string;
    /** The scopes of that principal. Default: none. */
    readonly scopes?: readonly string[];
    readonly shared?: true;
    /**
     * The id of its session if the session outlives the process: another connection with this id continues it. Default:
     * a new id.
     */
    readonly session?: string;
  };
  /** One whole message arrived, as text. Transports never inspect it. */
  'connection.text': {
    readonly connection: ConnectionId;
    readonly text: string;
    readonly exchange?: Exchange;
    /** The caller of a message that has no exchange and arrived with credentials of its own (HTTP+SSE of 2024-11-05). */
    readonly auth?: Auth | undefined;
  };
  /** The rules have admitted a request about which they could not decide at once. */
  'connection.admitted': { readonly exchange: Exchange };
  /**
   * The owner of this cell must serve the request of an exchange. The transport forwards the text, or calls `here` if this
   * node owns the cell by then.
   */
  'connection.elsewhere': {
    readonly connection: ConnectionId;
    readonly exchange: Exchange;
    readonly cell: number;
    /** True if the request may be sent to a second owner after the first one has ended without a response. */
    readonly repeatable: boolean;
    readonly here: () => void;
  };
  /** An exchange contained nothing that needs a response: notifications or responses. */
  'connection.accepted': { readonly connection: ConnectionId; readonly exchange: Exchange };
  /** The requests of an exchange will get no response: they were cancelled. */
  'connection.unanswered': { readonly connection: ConnectionId; readonly exchange: Exchange };
  /**
   * An `initialize` on a shared connection opened a session: `opened` is its own connection, to which the exchange now
   * belongs.
   */
  'connection.session': {
    readonly connection: ConnectionId;
    readonly exchange: Exchange;
    readonly opened: ConnectionId;
    /** The session's id: a secret that identifies its client. */
    readonly session: string;
    readonly dialect: Dialect;
    /** Persists the session, if the server's store is durable. */
    readonly keeper: SessionStorage | undefined;
  };
  /** On a shared connection, the client closed an exchange before its response: that cancels its request. */
  'connection.left': { readonly connection: ConnectionId; readonly exchange: Exchange };
  /**
   * A handler releases the client's exchange; the client asks for the response again after `retryMs` milliseconds
   * (SEP-1699).
   */
  'connection.release': { readonly connection: ConnectionId; readonly exchange: Exchange; readonly retryMs: number };
  /** Bytes arrived that are not one message; the transport has skipped them and continues. */
  'connection.unreadable': {
    readonly connection: ConnectionId;
    readonly reason: 'too long' | 'not UTF-8';
    readonly bytes: number;
    /** Their id and method as JSON (protocol/envelope.ts), or their beginning as text. */
    readonly head: string;
  };
  /**
   * The core rejects the text of the current 'connection.text' or 'connection.unreadable' event, or one request of its
   * batch, and runs nothing of it. `id` is the id of the error, if it has one. Emitted before the error.
   */
  'connection.rejected': { readonly connection: ConnectionId; readonly id: RequestId | undefined };
  /** The list of tools has changed. */
  'tools.changed': Readonly<Record<never, never>>;
  /** The peer reads more slowly than we write: queue what can wait. Default: the whole connection. */
  'connection.slow': { readonly connection: ConnectionId; readonly reader?: Reader };
  /** The peer has caught up. */
  'connection.drained': { readonly connection: ConnectionId; readonly reader?: Reader };
  /** The peer will send nothing more (end of input): answer what is in flight, then end the connection. */
  'connection.ended': { readonly connection: ConnectionId };
  /** The connection is closed; nothing can be sent any more. */
  'connection.closed': {
    readonly connection: ConnectionId;
    readonly reason: string;
    /** The session of the connection leaves memory, and its next request restores it. */
    readonly hibernates?: true;
  };
  /** A client has opened a session. */
  'session.opened': { readonly client: ClientFacts };
  /** A session has ended: it neither serves nor hibernates. */
  'session.ended': { readonly session: string; readonly client: ClientFacts; readonly reason: string };
  /** A session has expired while only the store had it. Its id is unknown: the event has its actor in the store. */
  'session.expired': { readonly actor: string; readonly principal: string };
  /** A call ended the process that served it, and became a dead letter of this one. */
  'call.dead': { readonly element: string; readonly incident: string };
  /** A transport has rejected the credentials of a request. */
  'authentication.failed': { readonly remoteAddress: string | undefined };
  /** A transport has rejected a request beyond the limit that this option sets. */
  'client.limited': {
    readonly principal: string;
    readonly option: string;
    readonly remoteAddress: string | undefined;
  };
  /** The core has one message for the peer, as text without a line end. */
  'connection.send': {
    readonly connection: ConnectionId;
    readonly text: string;
    readonly about: About;
    /** The HTTP status of a response; undefined for other messages. Only HTTP reads it. */
    readonly status: number | undefined;
    /** The same text as bytes, most of them cached, for transports that can write bytes. */
    readonly bytes?: Bytes | undefined;
  };
  /** Another process takes over these cells: the transports hibernate their sessions, and end their streams. */
  'cells.leaving': LeavingCells;
  /** The server deletes the data of a principal. */
  'principal.forgotten': ForgottenPrincipal;
  /** The core has nothing more to send: flush, then close. */
  'connection.end': { readonly connection: ConnectionId; readonly reason: string };
}

/** Emits events on the bus. */
export interface ConnectionEventEmitter {
  emit<K extends keyof ConnectionEvents>(name: K, event: ConnectionEvents[K]): void;
}
