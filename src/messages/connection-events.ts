/** What transports and the core say to each other over the bus: types only. */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { SessionStorage } from './session-storage.ts';

/** Names one use of a transport: a pipe, a socket, an HTTP exchange. Unique within the process. */
export type ConnectionId = string;

/** One exchange of a transport that has them: the HTTP request that messages came in with, and whose response carries their answers. */
export interface Exchange {
  /** Unique within its connection. */
  readonly id: number;
  readonly principal: string;
  /** A header of the HTTP request, by its name in lower case. */
  header(name: string): string | undefined;
  /** Whether that header came more than once, as far as can be told. */
  repeats(name: string): boolean;
  /** False where its client takes no stream of events as a response. */
  readonly streams?: boolean;
  /** The id of the request that it brought: the door says so. */
  request?: RequestId | undefined;
  /** The store keeps a reply to a call that it brought: its response leaves when that is durable, too. The core says so. */
  storesReply?: boolean;
}

/** What an outbound message belongs to. stdio ignores it; HTTP routes by it. */
export type About =
  | {
      readonly kind: 'request';
      readonly id: RequestId;
      readonly exchange: Exchange | undefined;
      /** The inspection record of the message that brought it; 0 or absent where nobody watched. */
      readonly cause?: number;
      /** It has no end of its own, so its response must be a stream. */
      readonly stays?: true;
    }
  | { readonly kind: 'session' }
  /** The connection as a whole, or what came in with one exchange. */
  | { readonly kind: 'connection'; readonly exchange: Exchange | undefined };

/** What reads slowly: the whole connection, the responses of one exchange, or what the session says of its own accord. */
export type Reader = 'connection' | 'session' | Exchange;

/** Makes the bytes of one message, in pieces; only a transport that writes them asks for them. */
export type Bytes = () => readonly Uint8Array[];

export interface ConnectionEvents {
  /**
   * A transport opened a connection. A `shared` one is used by any number of clients, each of whose messages comes with an
   * exchange: it has no session, and an `initialize` on it opens a connection of its own.
   */
  'connection.opened': {
    readonly connection: ConnectionId;
    readonly transport: string;
    /** Who every message on it is authorised as. Default: `anonymous`. */
    readonly principal?: string;
    readonly shared?: true;
    /** The id of its session, where that outlives the process: another connection with it goes on. Default: one of its own. */
    readonly session?: string;
  };
  /** One whole message came in, as text. The transport never looks inside. */
  'connection.text': { readonly connection: ConnectionId; readonly text: string; readonly exchange?: Exchange };
  /** An exchange brought nothing that is answered: notifications, or responses. */
  'connection.accepted': { readonly connection: ConnectionId; readonly exchange: Exchange };
  /** The requests of an exchange will get no answer: they were cancelled. */
  'connection.unanswered': { readonly connection: ConnectionId; readonly exchange: Exchange };
  /** On a shared connection, an `initialize` opened a session: `opened` is its own connection, which the exchange now belongs to. */
  'connection.session': {
    readonly connection: ConnectionId;
    readonly exchange: Exchange;
    readonly opened: ConnectionId;
    /** The session's id: a secret, by which its client is known. */
    readonly session: string;
    readonly dialect: Dialect;
    /** Keeps it beyond this process, where the store of the server does. */
    readonly keeper: SessionStorage | undefined;
  };
  /** On a shared connection, the client has closed an exchange before its answer: that cancels its request. */
  'connection.left': { readonly connection: ConnectionId; readonly exchange: Exchange };
  /** A handler lets go of the client's exchange, to be asked again for the answer after `retryMs` milliseconds (SEP-1699). */
  'connection.release': { readonly connection: ConnectionId; readonly exchange: Exchange; readonly retryMs: number };
  /** Bytes came in that cannot be one message; the transport has skipped them and goes on. */
  'connection.unreadable': {
    readonly connection: ConnectionId;
    readonly reason: 'too long' | 'not UTF-8';
    readonly bytes: number;
    /** Their id and method as JSON (protocol/envelope.ts), or how they begin, as text. */
    readonly head: string;
  };
  /**
   * The core rejects what came in with the 'connection.text' or 'connection.unreadable' that is being emitted, or of a batch one
   * request, and runs nothing of it. `id` is that of the error, undefined if it has none. Precedes the error.
   */
  'connection.rejected': { readonly connection: ConnectionId; readonly id: RequestId | undefined };
  /** The list of tools has changed. */
  'tools.changed': Readonly<Record<never, never>>;
  /** The peer reads slower than we write: hold back what can wait. Default: the whole connection. */
  'connection.slow': { readonly connection: ConnectionId; readonly reader?: Reader };
  /** The peer has caught up. */
  'connection.drained': { readonly connection: ConnectionId; readonly reader?: Reader };
  /** The peer will send nothing more (end of input): answer what is in flight, then end the connection. */
  'connection.ended': { readonly connection: ConnectionId };
  /** The connection is gone; nothing can be sent any more. */
  'connection.closed': { readonly connection: ConnectionId; readonly reason: string };
  /** The core has one message for the peer, as text without a line end. */
  'connection.send': {
    readonly connection: ConnectionId;
    readonly text: string;
    readonly about: About;
    /** For an answer, the HTTP status that goes with it; undefined for what is none. Only HTTP reads it. */
    readonly status: number | undefined;
    /** The same text as bytes, of which the greater part was made before: for a transport that can write them as they are. */
    readonly bytes?: Bytes | undefined;
  };
  /** The core has nothing more to send: flush, then close. */
  'connection.end': { readonly connection: ConnectionId; readonly reason: string };
}
