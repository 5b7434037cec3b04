/** The only place where text becomes mail. It decides the era once, at the door, and refuses there what nobody could serve. */
import type { Inspection } from '../inspect.ts';
import type { Client } from '../messages/client.ts';
import type { EmitterMail } from '../messages/emitter.ts';
import type { Batch } from '../messages/in-flight.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { RequestsMail } from '../messages/requests.ts';
import type { SessionMail } from '../messages/session.ts';
import { DIALECTS, type Dialect, FIRST_DIALECT } from '../protocol/dialects/index.ts';
import { ErrorCode, type ErrorCodeValue, ProtocolError, toWireError, wireError } from '../protocol/errors.ts';
import { type Incoming, isRequestId, type RequestId, readIncoming } from '../protocol/jsonrpc.ts';
import { isModern, META, metaOf, readProgressToken, readSelfDescription } from '../protocol/meta.ts';
import { METHODS, SERVED, type ServedMethod } from '../protocol/methods.ts';
import { type Initialize, type Params, readInitialize } from '../protocol/operations.ts';
import { isLegacyRevision, LATEST_LEGACY, LATEST_MODERN, SUPPORTED_REVISIONS } from '../protocol/revisions.ts';
import type { ServerCapabilities } from '../protocol/types.ts';
import { InFlightRequest } from '../requests/in-flight.ts';
import { type ParseLimits, parseText } from './parse.ts';

export interface InboundOptions extends ParseLimits {
  readonly connection: string;
  readonly inspection: Inspection;
  readonly requests: Mailbox<RequestsMail>;
  readonly emitter: Mailbox<EmitterMail>;
  readonly principal: string;
  readonly maxBatch: number;
  readonly maxMessageBytes: number;
  /** The session that a legacy client has open on this connection, if any. */
  session(): Client | undefined;
  /** Opens one. The server has none open on this connection when this is called. */
  openSession(opening: Initialize, dialect: Dialect): Client;
  /** Whether the server offers a capability now. */
  offers(capability: keyof ServerCapabilities): boolean;
  incident(where: string, error: unknown): string;
}

type RequestMessage = Extract<Incoming, { kind: 'request' }>;
type NotificationMessage = Extract<Incoming, { kind: 'notification' }>;

/** The door of one connection. */
export class Inbound {
  readonly #options: InboundOptions;
  /** The dialect that was last heard: what an error is written in when its request could not be read. */
  #heard: Dialect = FIRST_DIALECT;

  constructor(options: InboundOptions) {
    this.#options = options;
  }

  /** Takes one whole message (or batch) as text. Never throws. */
  text(text: string): void {
    const { inspection, connection } = this.#options;
    if (!inspection.on) return this.#read(text);
    inspection.because(inspection.record({ type: 'wire', connection, direction: 'in', text }), () => this.#read(text));
  }

  /** Answers for bytes that the transport could not make a message of. */
  unreadable(reason: 'too long' | 'not UTF-8', bytes: number): void {
    const { maxMessageBytes } = this.#options;
    if (reason === 'too long')
      this.#refuse(
        undefined,
        ErrorCode.InvalidRequest,
        `a message of ${bytes} bytes is longer than ${maxMessageBytes} (the server's option is maxMessageBytes)`,
      );
    else this.#refuse(undefined, ErrorCode.ParseError, 'not valid UTF-8');
  }

  #read(text: string): void {
    const parsed = parseText(text, this.#options);
    if (!parsed.ok) return this.#unparsed(parsed.value, parsed.error);
    if (Array.isArray(parsed.value)) return this.#batch(parsed.value);
    this.#dispatch(readIncoming(parsed.value), undefined);
  }

  /** A text that is refused whole: a request gets its error; a notification or response gets none. */
  #unparsed(value: unknown, error: ProtocolError): void {
    if (value === undefined) return this.#refuse(undefined, error.code, error.message);
    const incoming = readIncoming(value);
    if (incoming.kind === 'request') this.#refuse(incoming.id, error.code, error.message);
    else if (incoming.kind === 'invalid' && incoming.answer) this.#refuse(incoming.id, error.code, error.message);
  }

  #batch(messages: readonly unknown[]): void {
    const { maxBatch } = this.#options;
    if (!this.#options.session()?.dialect.batching)
      return this.#refuse(
        undefined,
        ErrorCode.InvalidRequest,
        'batches exist in protocol revision 2025-03-26 only: send one message at a time',
      );
    if (messages.length === 0 || messages.length > maxBatch) {
      return this.#refuse(
        undefined,
        ErrorCode.InvalidRequest,
        `a batch has 1 to ${maxBatch} messages, this one has ${messages.length} (the server's option is maxBatch)`,
      );
    }
    const incoming = messages.map(readIncoming);
    const owed = incoming.filter(
      (message) => message.kind === 'request' || (message.kind === 'invalid' && message.answer),
    ).length;
    const batch: Batch = { owed, answers: [] };
    for (const message of incoming) this.#dispatch(message, batch);
  }

  #dispatch(message: Incoming, batch: Batch | undefined): void {
    switch (message.kind) {
      case 'request':
        return this.#request(message, batch);
      case 'notification':
        return this.#notification(message);
      case 'response':
        // Nothing was asked: asks are not served yet (METHODS), so no response is awaited.
        return;
      case 'invalid':
        if (message.answer) this.#refuse(message.id, ErrorCode.InvalidRequest, message.why, batch);
    }
  }

  #request(message: RequestMessage, batch: Batch | undefined): void {
    try {
      if (isModern(message.params)) this.#modern(message, batch);
      else if (message.method === 'initialize') this.#initialize(message, batch);
      else this.#legacy(message, batch);
    } catch (error) {
      const {
        code,
        message: why,
        data,
      } = toWireError(error, error instanceof ProtocolError ? '' : this.#options.incident('the inbound door', error));
      this.#refuse(message.id, code, why, batch, data);
    }
  }

  #modern(message: RequestMessage, batch: Batch | undefined): void {
    this.#heard = DIALECTS[LATEST_MODERN];
    if (batch)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        `revision ${LATEST_MODERN} has no batches: send one message at a time`,
      );
    const { revision, info, capabilities, logLevel } = readSelfDescription(message.params);
    const dialect = DIALECTS[revision];
    this.#admit(
      message,
      served(message.method, dialect),
      { dialect, info, capabilities, logLevel, principal: this.#options.principal, session: undefined },
      batch,
    );
  }

  #initialize(message: RequestMessage, batch: Batch | undefined): void {
    if (batch) throw new ProtocolError(ErrorCode.InvalidRequest, '"initialize" may not be part of a batch');
    if (this.#options.session())
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        'this connection has a session already: "initialize" opens one, once',
      );
    const opening = readInitialize(message.params);
    // Before the session is there: what is refused for this must have opened nothing.
    readProgressToken(message.params);
    // The server answers with the same revision if it speaks it, else with its latest (MCP 2025-11-25 lifecycle, "Version Negotiation").
    const dialect = DIALECTS[isLegacyRevision(opening.protocolVersion) ? opening.protocolVersion : LATEST_LEGACY];
    this.#heard = dialect;
    this.#admit(message, served(message.method, dialect), this.#options.openSession(opening, dialect), undefined);
  }

  #legacy(message: RequestMessage, batch: Batch | undefined): void {
    const session = this.#options.session();
    if (session) {
      this.#heard = session.dialect;
      return this.#admit(message, served(message.method, session.dialect), session, batch);
    }
    const method = SERVED.legacy.get(message.method);
    if (!method?.always) {
      const keys = `params._meta["${META.protocolVersion}"] and params._meta["${META.clientCapabilities}"]`;
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `${message.method}: expected ${keys} (revision 2026-07-28), or "initialize" first (2025-11-25 and earlier); got neither`,
        {
          supported: SUPPORTED_REVISIONS,
        },
      );
    }
    this.#admit(
      message,
      method,
      {
        dialect: DIALECTS[LATEST_LEGACY],
        info: undefined,
        capabilities: {},
        logLevel: undefined,
        principal: this.#options.principal,
        session: undefined,
      },
      batch,
    );
  }

  #admit(message: RequestMessage, method: ServedMethod, client: Client, batch: Batch | undefined): void {
    if (method.needs && !this.#options.offers(method.needs))
      throw new ProtocolError(ErrorCode.MethodNotFound, `${message.method}: this server offers no ${method.needs}`);
    const { requests, inspection } = this.#options;
    const request = new InFlightRequest(
      message.id,
      method.served.read(message.params),
      method.served.by,
      client,
      metaOf(message.params),
      readProgressToken(message.params),
      batch,
      requests,
      inspection.cause,
    );
    const gate: Mailbox<SessionMail | RequestsMail> =
      client.session && request.operation.method !== 'initialize' ? client.session.mailbox : requests;
    gate.send({ type: 'request', request });
  }

  #notification({ method, params }: NotificationMessage): void {
    switch (method) {
      case 'notifications/cancelled':
        return this.#cancelled(params);
      case 'notifications/initialized':
        return this.#options.session()?.session?.mailbox.send({ type: 'initialized' });
      default:
        // A notification is never answered; one that nobody waits for is ignored (JSON-RPC 2.0 section 4.1).
        return;
    }
  }

  /** Malformed cancellations are ignored (MCP "Cancellation", "Error Handling"). */
  #cancelled(params: Params): void {
    const id = params?.requestId;
    const reason = params?.reason;
    if (isRequestId(id))
      this.#options.requests.send({ type: 'cancel', id, reason: typeof reason === 'string' ? reason : undefined });
  }

  #refuse(
    id: RequestId | undefined,
    code: ErrorCodeValue,
    message: string,
    batch?: Batch,
    data?: ProtocolError['data'],
  ): void {
    this.#options.emitter.send({
      type: 'refusal',
      id,
      dialect: this.#heard,
      error: wireError(code, message, data),
      batch,
    });
  }
}

/** The row of the methods table. @throws {ProtocolError} -32601, saying whether the method is unknown or belongs to another era */
function served(name: string, dialect: Dialect): ServedMethod {
  const method = SERVED[dialect.era].get(name);
  if (method) return method;
  const known = METHODS.get(name);
  if (known?.kind === 'notification')
    throw new ProtocolError(ErrorCode.InvalidRequest, `${name} is a notification: send it without an id`);
  const elsewhere =
    known && !known.eras.includes(dialect.era) ? ` (it belongs to the ${known.eras.join(' and ')} era)` : '';
  throw new ProtocolError(
    ErrorCode.MethodNotFound,
    `revision ${dialect.revision} of this server has no method "${name.slice(0, 100)}"${elsewhere}`,
  );
}
