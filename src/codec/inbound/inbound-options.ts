/** The options of the inbound codec, and the interface through which it opens sessions. Types only. */
import type { ActorSystem } from '../../actor/actor-system.ts';
import type { Client } from '../../messages/client-facts.ts';
import type { Exchange } from '../../messages/connection-events.ts';
import type { EmitterMail } from '../../messages/emitter-messages.ts';
import type { Mailbox } from '../../messages/mailbox.ts';
import type { RequestsMail } from '../../messages/request-messages.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import type { Initialize } from '../../protocol/operations.ts';
import type { ServerCapabilities } from '../../protocol/types.ts';
import type { ParseLimits } from './parse.ts';

/** A session that was just opened, and the in-flight table of its requests. */
export interface OpenedSession {
  readonly client: Client;
  readonly requests: Mailbox<RequestsMail>;
}

export interface InboundOptions extends ParseLimits {
  readonly connection: string;
  readonly system: ActorSystem;
  readonly requests: Mailbox<RequestsMail>;
  readonly emitter: Mailbox<EmitterMail>;
  /** The principal of messages without an exchange. */
  readonly principal: string;
  /** True if every message comes with an exchange, possibly of different clients; there is never a session. */
  readonly shared: boolean;
  readonly maxBatch: number;
  readonly maxMessageBytes: number;
  readonly maxClientInfoBytes: number;
  /** The open session of a legacy client on this connection, if any. */
  session(): Client | undefined;
  /**
   * Opens a session: on this connection, which has none, or for a shared connection on a new one. @throws
   * {ProtocolError} if there are too many sessions
   */
  openSession(opening: Initialize, dialect: Dialect, exchange: Exchange | undefined): OpenedSession;
  /**
   * Called before the error when a whole text or one of its requests is rejected, with the id of the error if it has
   * one.
   */
  rejected(id: RequestId | undefined): void;
  /** Called when an exchange contained nothing that needs a response. */
  accepted(exchange: Exchange): void;
  /** Whether the server currently has a capability. */
  offers(capability: keyof ServerCapabilities): boolean;
}
