/**
 * The inbound codec, the only place where text becomes messages. Decides the era of each message, and rejects invalid
 * messages.
 */

import type { ActorSystem } from '../../kernel/actor-system.ts';
import type { Auth } from '../../messages/auth.ts';
import type { ClientFacts } from '../../messages/client-facts.ts';
import type { Reply } from '../../messages/client-input.ts';
import type { ConnectionEventEmitter, Exchange } from '../../messages/connection-events.ts';
import type { EmitterMail } from '../../messages/emitter-messages.ts';
import type { Mailbox } from '../../messages/mailbox.ts';
import type { Capabilities } from '../../messages/offered-capabilities.ts';
import type { RequestsMail } from '../../messages/request-messages.ts';
import type { RequestPlacement } from '../../messages/request-placement.ts';
import type { Batch } from '../../messages/request-view.ts';
import type { SessionMail } from '../../messages/session-messages.ts';
import { DIALECTS, type Dialect, FIRST_DIALECT } from '../../protocol/dialects/index.ts';
import { ErrorCode, type ErrorCodeValue, ProtocolError, toWireError, wireError } from '../../protocol/errors.ts';
import { heapBytes } from '../../protocol/heap.ts';
import { isObject } from '../../protocol/json.ts';
import { type Incoming, isRequestId, type RequestId, readIncoming } from '../../protocol/jsonrpc.ts';
import { isModern, META, metaOf, readProgressToken, readSelfDescription } from '../../protocol/meta.ts';
import type { Methods, ServedMethod } from '../../protocol/methods.ts';
import type { Initialize } from '../../protocol/operations.ts';
import { type Params, readInitialize } from '../../protocol/operations.ts';
import { isLegacyRevision, isModernRevision, LATEST_LEGACY, LATEST_MODERN } from '../../protocol/revisions.ts';
import { statusOfRefusal } from '../../protocol/status.ts';
import type { ClientCapabilities, Implementation } from '../../protocol/types.ts';
import { IncomingRequest, setProgress } from '../../requests/active-request.ts';
import { checkKnownRevision, checkRevisionHeader, checkStandardHeaders } from '../../requests/mirrored-headers.ts';
import { lastProgressIn } from './earlier-progress.ts';
import type { ParseLimits } from './parse.ts';
import { messageEnvelopeOf, parseText } from './parse.ts';
import { methodMissing, misplacedWithoutSession, unopened } from './route.ts';

type RequestMessage = Extract<Incoming, { kind: 'request' }>;
type NotificationMessage = Extract<Incoming, { kind: 'notification' }>;
type ResponseMessage = Extract<Incoming, { kind: 'response' }>;

/** Maximum number of requests of a rejected batch that get their own error: a batch of four megabytes can contain 100,000. */
const MAX_REFUSED = 1_000;

/** A session that was just opened, and the in-flight table of its requests. */
export interface OpenedSession {
  readonly client: ClientFacts;
  readonly requests: Mailbox<RequestsMail>;
}

/** Opens sessions for a connection: on the connection itself, or for a shared connection on new ones. */
export interface SessionOpener {
  /** The client of the connection's open session, if any. */
  readonly client: ClientFacts | undefined;
  /** @throws {ProtocolError} if there are too many sessions */
  openSession(opening: Initialize, dialect: Dialect, exchange: Exchange | undefined): OpenedSession;
}

interface InboundSettings extends ParseLimits {
  readonly connection: string;
  readonly system: ActorSystem;
  readonly requests: Mailbox<RequestsMail>;
  readonly emitter: Mailbox<EmitterMail>;
  /** The principal of messages without an exchange. */
  readonly principal: string;
  /** The caller of messages without an exchange and without credentials of their own. */
  readonly auth: Auth | undefined;
  /** True if every message comes with an exchange, possibly of different clients; there is never a session. */
  readonly shared: boolean;
  readonly maxBatch: number;
  readonly maxMessageBytes: number;
  readonly maxClientInfoBytes: number;
  readonly sessions: SessionOpener;
  /**
   * Receives `connection.rejected` before the error of a text or request, and `connection.accepted` for an exchange
   * that contained nothing that needs a response.
   */
  readonly bus: ConnectionEventEmitter;
  /** Quota in bytes for messages from clients. */
  readonly retained: { excess(principal: string, bytes: number, session?: string): Pick<Error, 'message'> | undefined };
  /** The current capabilities of the server. */
  readonly capabilities: Capabilities;
  readonly methods: Methods;
  /** Decides which node serves a request; undefined without a cluster. */
  readonly placement?: RequestPlacement | undefined;
}

/** The inbound codec of one connection. */
export class Inbound {
  readonly #options: InboundSettings;
  /** The dialect of the last valid message; used for the error if a request cannot be read. */
  #heard: Dialect | undefined;
  /** The exchange of the text that is being read. */
  #exchange: Exchange | undefined;
  /** The caller of the text that is being read, if it has no exchange. */
  #auth: Auth | undefined;
  /** Approximate memory of the message that is being read; in a batch, the average of its messages. */
  #bytes = 0;
  /** True if the exchange declares the modern era. */
  #announced = false;

  constructor(options: InboundSettings) {
    this.#options = options;
  }

  /** Takes one whole message (or batch) as text. Never throws. */
  text(text: string, exchange?: Exchange, auth: Auth | undefined = this.#options.auth): void {
    const { system, connection } = this.#options;
    const { inspection } = system;
    const before = this.#exchange;
    const announced = this.#announced;
    const caller = this.#auth;
    this.#enter(exchange);
    this.#auth = auth;
    // The previous message was from another client.
    if (exchange && this.#options.shared) this.#heard = this.#announced ? DIALECTS[LATEST_MODERN] : FIRST_DIALECT;
    if (!inspection.on) this.#read(text);
    else
      inspection.withCause(inspection.record({ type: 'wire', connection, direction: 'in', text }), () => {
        if (exchange?.incoming.hop && inspection.full)
          inspection.record({ type: 'hop', way: 'from', ...exchange.incoming.hop });
        this.#read(text);
      });
    this.#exchange = before;
    this.#announced = announced;
    this.#auth = caller;
  }

  #enter(exchange: Exchange | undefined): void {
    this.#exchange = exchange;
    // A request of a modern client has no session.
    this.#announced = this.#options.shared && isModernRevision(exchange?.incoming.header('mcp-protocol-version'));
  }

  /** Responds to bytes from which the transport could not make a message. */
  unreadable(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void {
    const { maxMessageBytes } = this.#options;
    const error =
      reason === 'too long'
        ? new ProtocolError(
            ErrorCode.InvalidRequest,
            `a message of ${bytes} bytes is longer than ${maxMessageBytes} (the server's option is maxMessageBytes)`,
          )
        : new ProtocolError(ErrorCode.ParseError, 'not valid UTF-8');
    // Bytes that are not UTF-8 are not JSON.
    this.#unparsed(reason === 'too long' ? messageEnvelopeOf(head) : undefined, error);
  }

  #read(text: string): void {
    const parsed = parseText(text, this.#options, this.#full);
    if (!parsed.ok) return this.#unparsed(parsed.value, parsed.error);
    this.#bytes = parsed.bytes;
    if (Array.isArray(parsed.value)) return this.#batch(parsed.value);
    const incoming = readIncoming(parsed.value);
    // A message that is not a valid request may still name its revision, which decides whether its error has an id.
    if (incoming.kind === 'invalid' && isObject(parsed.value)) {
      const { params } = parsed.value;
      if (isObject(params) && isModern(params)) this.#heard = DIALECTS[LATEST_MODERN];
    }
    this.#dispatch(incoming, undefined);
  }

  /** Checks a long message, which the in-flight table counts until its handler has ended. */
  readonly #full = (bytes: number): string | undefined => {
    const excess = this.#options.retained.excess(this.#principal(), bytes, this.#options.sessions.client?.session?.id);
    return excess && `${excess.message}: send less at once, or retry later`;
  };

  /** Rejects a whole text: a request gets its error; a notification or response gets none. */
  #unparsed(value: unknown, error: ProtocolError): void {
    const { code, message: why } = error;
    if (value === undefined) return this.#refuse(undefined, code, why);
    if (Array.isArray(value)) return this.#refuseAll(value.map(readIncoming), code, why);
    const incoming = readIncoming(value);
    if (incoming.kind === 'request' || (incoming.kind === 'invalid' && incoming.answer))
      return this.#refuse(incoming.id, code, why);
    if (incoming.kind === 'response') this.#responseRefused(incoming, code, why);
    // JSON-RPC has no response to notifications and responses; an HTTP request always needs one.
    if (this.#exchange) this.#refuse(undefined, code, why);
  }

  /**
   * Rejects a whole batch. On a stream, each readable request gets its own error, because its client waits for that id;
   * the errors are one message if the revision has batches. Over HTTP the response is one error.
   */
  #refuseAll(messages: readonly Incoming[], code: ErrorCodeValue, why: string): void {
    for (const message of messages) if (message.kind === 'response') this.#responseRefused(message, code, why);
    const ids = new Set<RequestId>();
    for (const message of messages) {
      const { kind } = message;
      if (kind === 'request' || (kind === 'invalid' && message.answer))
        if (message.id !== undefined) ids.add(message.id);
      if (ids.size >= MAX_REFUSED) break;
    }
    const [only] = ids;
    if (ids.size === 0 || this.#exchange) return this.#refuse(ids.size === 1 ? only : undefined, code, why);
    const batching = this.#options.sessions.client?.dialect.batching;
    const batch: Batch | undefined = batching ? { owed: ids.size, answers: [], exchange: undefined } : undefined;
    for (const id of ids) this.#refuse(id, code, why, batch);
  }

  #batch(messages: readonly unknown[]): void {
    const { maxBatch } = this.#options;
    const incoming = messages.map(readIncoming);
    if (!this.#options.sessions.client?.dialect.batching)
      return this.#refuseAll(
        incoming,
        ErrorCode.InvalidRequest,
        'batches exist in protocol revision 2025-03-26 only: send one message at a time',
      );
    if (messages.length === 0 || messages.length > maxBatch) {
      return this.#refuseAll(
        incoming,
        ErrorCode.InvalidRequest,
        `a batch has 1 to ${maxBatch} messages, this one has ${messages.length} (the server's option is maxBatch)`,
      );
    }
    this.#bytes = Math.ceil(this.#bytes / messages.length);
    const owed = incoming.filter(
      (message) => message.kind === 'request' || (message.kind === 'invalid' && message.answer),
    ).length;
    const batch: Batch = { owed, answers: [], exchange: this.#exchange };
    for (const message of incoming) this.#dispatch(message, batch);
    if (owed === 0) this.#accepted();
  }

  #dispatch(message: Incoming, batch: Batch | undefined): void {
    switch (message.kind) {
      case 'request':
        return this.#request(message, batch);
      case 'notification':
      case 'response': {
        const shared = this.#exchange && this.#options.shared;
        const misplaced = shared ? misplacedWithoutSession(message.kind, this.#announced) : undefined;
        if (misplaced !== undefined) return this.#refuse(undefined, ErrorCode.InvalidRequest, misplaced);
        if (message.kind === 'notification') this.#notification(message);
        else this.#response(message);
        if (!batch) this.#accepted();
        return;
      }
      case 'invalid':
        if (message.answer || (this.#exchange && !batch))
          this.#refuse(message.id, ErrorCode.InvalidRequest, message.why, batch);
    }
  }

  #accepted(): void {
    const { bus, connection } = this.#options;
    if (this.#exchange) bus.emit('connection.accepted', { connection, exchange: this.#exchange });
  }

  #request(message: RequestMessage, batch: Batch | undefined): void {
    try {
      if (this.#announced || isModern(message.params)) this.#modern(message, batch);
      else if (message.method === 'initialize') this.#initialize(message, batch);
      else this.#legacy(message, batch);
    } catch (error) {
      this.#fail(message.id, error, batch);
    }
  }

  #fail(id: RequestId, error: unknown, batch: Batch | undefined): void {
    const incident = error instanceof ProtocolError ? '' : this.#options.system.incident('the inbound codec', error);
    const { code, message, data } = toWireError(error, incident);
    this.#refuse(id, code, message, batch, data);
  }

  #modern(message: RequestMessage, batch: Batch | undefined): void {
    this.#heard = DIALECTS[LATEST_MODERN];
    if (batch)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        `revision ${LATEST_MODERN} has no batches: send one message at a time`,
      );
    const exchange = this.#exchange;
    const named = metaOf(message.params)?.[META.protocolVersion];
    if (exchange && typeof named === 'string') checkRevisionHeader(exchange.incoming, named);
    const { revision, info, capabilities, logLevel } = readSelfDescription(message.params);
    const dialect = DIALECTS[revision];
    const { methods } = this.#options;
    const method = methods.served[dialect.era].get(message.method);
    if (exchange) checkStandardHeaders(exchange.incoming, message.method, method?.named, message.params);
    if (this.#bytes > this.#options.maxClientInfoBytes) this.#checkClientInfo(info, capabilities);
    this.#admit(
      message,
      method ?? methodMissing(message.method, dialect, methods.get(message.method)),
      {
        dialect,
        info,
        capabilities,
        logLevel,
        principal: exchange?.principal ?? this.#options.principal,
        session: undefined,
      },
      batch,
    );
  }

  #initialize(message: RequestMessage, batch: Batch | undefined): void {
    if (batch) throw new ProtocolError(ErrorCode.InvalidRequest, '"initialize" must not be part of a batch');
    if (this.#options.sessions.client)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        'this connection already has a session: send "initialize" only once',
      );
    if (this.#exchange) checkKnownRevision(this.#exchange.incoming);
    const opening = readInitialize(message.params);
    // Before the session exists: a rejected request must not open one.
    readProgressToken(message.params);
    this.#checkClientInfo(opening.clientInfo, opening.capabilities);
    // The server answers with the requested revision if it supports it, otherwise with its latest (MCP 2025-11-25
    // lifecycle, "Version Negotiation").
    const dialect = DIALECTS[isLegacyRevision(opening.protocolVersion) ? opening.protocolVersion : LATEST_LEGACY];
    this.#heard = dialect;
    const { methods } = this.#options;
    const method = methods.served[dialect.era].get(message.method) ?? methodMissing(message.method, dialect, undefined);
    const open = (): void => {
      const { client, requests } = this.#options.sessions.openSession(opening, dialect, this.#exchange);
      this.#admit(message, method, client, undefined, requests);
    };
    const { placement } = this.#options;
    const cell = placement && this.#options.shared ? placement.cellOfSession(this.#principal()) : undefined;
    // Clients accept a second session, if the first owner has ended without a response.
    if (cell === undefined || !this.#elsewhere(cell, true, message, open)) open();
  }

  /**
   * Finds out if another node serves a request, or may serve it: the transport then forwards its text, or continues.
   *
   * @returns false if this node owns the cell
   */
  #elsewhere(cell: number, repeatable: boolean, { id }: RequestMessage, here: () => void): boolean {
    const { bus, connection, placement } = this.#options;
    const exchange = this.#exchange;
    if (!exchange) return false;
    if (placement?.owns(cell)) {
      exchange.enter?.(cell);
      return false;
    }
    const heard = this.#heard;
    bus.emit('connection.elsewhere', {
      ...{ connection, exchange, cell, repeatable },
      here: () => {
        const before = this.#exchange;
        this.#enter(exchange);
        this.#heard = heard;
        try {
          here();
        } catch (error) {
          this.#fail(id, error, undefined);
        } finally {
          this.#enter(before);
        }
      },
    });
    return true;
  }

  /**
   * The client's description of itself is held as long as its session or request. @throws {ProtocolError} if it is too
   * large
   */
  #checkClientInfo(info: Implementation | undefined, capabilities: ClientCapabilities): void {
    const most = this.#options.maxClientInfoBytes;
    if (this.#bytes <= most) return;
    const bytes = heapBytes(info, most) + heapBytes(capabilities, most);
    if (bytes > most)
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `clientInfo and capabilities: expected at most ${most} bytes in memory, got at least ${bytes}: leave out large icons and experimental data (the server's option is limits.maxClientInfoBytes)`,
      );
  }

  #principal(): string {
    return this.#exchange?.principal ?? this.#options.principal;
  }

  #legacy(message: RequestMessage, batch: Batch | undefined): void {
    const session = this.#options.sessions.client;
    if (session) {
      this.#heard = session.dialect;
      const { dialect } = session;
      const { methods } = this.#options;
      const { method: name } = message;
      const method = methods.served[dialect.era].get(name) ?? methodMissing(name, dialect, methods.get(name));
      return this.#admit(message, method, session, batch);
    }
    const method = this.#options.methods.served.legacy.get(message.method);
    // Over HTTP every message of a session names the session, even a ping (2025-11-25 transports, "Session
    // Management").
    if (!method?.always || this.#options.shared) throw unopened(message.method);
    this.#admit(
      message,
      method,
      {
        dialect: DIALECTS[LATEST_LEGACY],
        info: undefined,
        capabilities: {},
        logLevel: undefined,
        principal: this.#principal(),
        session: undefined,
      },
      batch,
    );
  }

  #admit(
    message: RequestMessage,
    method: ServedMethod,
    client: ClientFacts,
    batch: Batch | undefined,
    requests = this.#options.requests,
  ): void {
    if (method.needs && this.#options.capabilities.offered[method.needs] === undefined)
      throw new ProtocolError(ErrorCode.MethodNotFound, `${message.method}: this server has no ${method.needs}`);
    if (method.extension && !this.#options.capabilities.uses(method.extension))
      throw new ProtocolError(
        ErrorCode.MethodNotFound,
        `${message.method}: this server does not use the extension ${method.extension}`,
      );
    const { system, shared } = this.#options;
    const { inspection } = system;
    const exchange = this.#exchange;
    if (exchange) exchange.request = message.id;
    const operation = method.served.read(message.params);
    const token = readProgressToken(message.params);
    const request = new IncomingRequest(
      message.id,
      operation,
      method.served.by,
      client,
      metaOf(message.params),
      token,
      batch,
      requests,
      inspection.on ? inspection.cause : 0,
      exchange,
      shared && exchange && !client.session ? exchange.id : message.id,
      this.#bytes,
      exchange ? exchange.incoming.auth : this.#auth,
    );
    const progress = exchange?.earlier && lastProgressIn(exchange.earlier, token, this.#options);
    if (progress !== undefined) setProgress(request, progress);
    const gate: Mailbox<SessionMail | RequestsMail> =
      client.session && request.operation.method !== 'initialize' ? client.session.mailbox : requests;
    const { placement } = this.#options;
    if (placement && shared && !client.session) {
      const cell = placement.cellOf(request);
      const here = (): void => gate.send({ type: 'request', request });
      if (cell !== undefined && this.#elsewhere(cell, placement.mayRepeat(request), message, here)) return;
    }
    gate.send({ type: 'request', request });
  }

  #notification({ method, params }: NotificationMessage): void {
    switch (method) {
      case 'notifications/cancelled':
        // On a shared connection ids are not unique; the client cancels by closing the response.
        return this.#options.shared ? undefined : this.#cancelled(params);
      case 'notifications/initialized':
        return this.#options.sessions.client?.session?.mailbox.send({ type: 'initialized' });
      case 'notifications/roots/list_changed':
        return this.#options.sessions.client?.session?.mailbox.send({ type: 'roots changed' });
      default:
        // Notifications get no response; unknown ones are ignored (JSON-RPC 2.0 section 4.1).
        return;
    }
  }

  /**
   * Handles the response to a request of this server in the session. Only legacy clients send responses; modern clients
   * retry with answers.
   */
  #response(message: ResponseMessage): void {
    this.#options.sessions.client?.session?.mailbox.send({
      type: 'response',
      id: message.id,
      reply: clientReply(message),
    });
  }

  /** Rejects an invalid response, and ends the request that waits for it. */
  #responseRefused(message: ResponseMessage, code: ErrorCodeValue, why: string): void {
    this.#response({ ...message, error: { code, message: `invalid response: ${why}` } });
  }

  /** Malformed cancellations are ignored (MCP "Cancellation", "Error Handling"). */
  #cancelled(params: Params): void {
    const id = params?.requestId;
    const reason = params?.reason;
    if (isRequestId(id))
      this.#options.requests.send({ type: 'cancel', key: id, reason: typeof reason === 'string' ? reason : undefined });
  }

  #refuse(
    id: RequestId | undefined,
    code: ErrorCodeValue,
    message: string,
    batch?: Batch,
    data?: ProtocolError['data'],
  ): void {
    // A batch member without an id does not affect the other members.
    const { bus, connection } = this.#options;
    if (!batch || id !== undefined) bus.emit('connection.rejected', { connection, id });
    const heard = this.#heard ?? this.#options.sessions.client?.dialect ?? FIRST_DIALECT;
    this.#options.emitter.send({
      type: 'refusal',
      id,
      // Over HTTP an error without an id has no "id" member (2025-03-26 to 2025-11-25 transports, "Sending Messages to
      // the Server").
      dialect: id === undefined && this.#exchange ? DIALECTS[LATEST_LEGACY] : heard,
      error: wireError(code, message, data),
      batch,
      exchange: this.#exchange,
      status: statusOfRefusal(
        code,
        id !== undefined && this.#options.sessions.client !== undefined && heard.era === 'legacy',
      ),
    });
  }
}

/** Reads a client's reply to an input request: its unchecked result, or its error. */
function clientReply({ result, error }: Extract<Incoming, { kind: 'response' }>): Reply {
  if (error === undefined) return { ok: true, result };
  const { code, message } = isObject(error) ? error : {};
  return {
    ok: false,
    error: {
      code: typeof code === 'number' ? code : 0,
      message: typeof message === 'string' ? message : 'no reason given',
    },
  };
}
