/** What transports and the core say to each other over the bus: types only. */
import type { RequestId } from '../protocol/jsonrpc.ts';

/** Names one use of a transport: a pipe, a socket, an HTTP exchange. Unique within the process. */
export type ConnectionId = string;

/** What an outbound message belongs to. stdio ignores it; HTTP routes by it. */
export type About =
  | { readonly kind: 'request'; readonly id: RequestId }
  | { readonly kind: 'session' }
  | { readonly kind: 'connection' };

export interface ConnectionEvents {
  /** A transport opened a connection. */
  'connection.opened': { readonly connection: ConnectionId; readonly transport: string };
  /** One whole message came in, as text. The transport never looks inside. */
  'connection.text': { readonly connection: ConnectionId; readonly text: string };
  /** Bytes came in that cannot be one message; the transport has skipped them and goes on. */
  'connection.unreadable': {
    readonly connection: ConnectionId;
    readonly reason: 'too long' | 'not UTF-8';
    readonly bytes: number;
  };
  /** The peer reads slower than we write: hold back what can wait. */
  'connection.slow': { readonly connection: ConnectionId };
  /** The peer has caught up. */
  'connection.drained': { readonly connection: ConnectionId };
  /** The peer will send nothing more (end of input): answer what is in flight, then end the connection. */
  'connection.ended': { readonly connection: ConnectionId };
  /** The connection is gone; nothing can be sent any more. */
  'connection.closed': { readonly connection: ConnectionId; readonly reason: string };
  /** The core has one message for the peer, as text without a line end. */
  'connection.send': { readonly connection: ConnectionId; readonly text: string; readonly about: About };
  /** The core has nothing more to send: flush, then close. */
  'connection.end': { readonly connection: ConnectionId; readonly reason: string };
}
