/** What the door of a connection is lent, and how it asks for a session: types only. */
import type { Inspection } from '../../inspection/inspection.ts';
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

/** A session that has just been opened, and the in-flight table of its requests. */
export interface OpenedSession {
  readonly client: Client;
  readonly requests: Mailbox<RequestsMail>;
}

export interface InboundOptions extends ParseLimits {
  readonly connection: string;
  readonly inspection: Inspection;
  readonly requests: Mailbox<RequestsMail>;
  readonly emitter: Mailbox<EmitterMail>;
  /** Who messages are authorised as that come without an exchange. */
  readonly principal: string;
  /** Every message comes with an exchange, each maybe of another client; there is never a session. */
  readonly shared: boolean;
  readonly maxBatch: number;
  readonly maxMessageBytes: number;
  readonly maxClientInfoBytes: number;
  /** The session that a legacy client has open on this connection, if any. */
  session(): Client | undefined;
  /** Opens one: here, where none is open when this is called, or for a shared connection on one of its own. @throws {ProtocolError} when there are too many */
  openSession(opening: Initialize, dialect: Dialect, exchange: Exchange | undefined): OpenedSession;
  /** A text is rejected whole, or one request of it; with the id of the error, where that has one. Precedes the error. */
  rejected(id: RequestId | undefined): void;
  /** An exchange brought nothing that is answered. */
  accepted(exchange: Exchange): void;
  /** Whether the server offers a capability now. */
  offers(capability: keyof ServerCapabilities): boolean;
  incident(where: string, error: unknown): string;
}
