/** One POST and the response that carries its answers, as one JSON body or as an event stream. */

import { isExcess, type Reservation } from '../kernel/quota.ts';
import type { Bytes, ConnectionId, Exchange } from '../messages/connection-events.ts';
import { ErrorCode, type ErrorCodeValue } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { TransportHost } from '../transports/transport.ts';
import { EVENT_STREAM, EventStream, reportPace } from './event-stream.ts';
import { challengeOf, type HttpAuthenticator } from './http-authenticator.ts';
import type { CommonHeaders, Headers, HttpRequest } from './http-message.ts';
import type { ResolvedHttpOptions } from './http-options.ts';
import type { HttpSession } from './http-session.ts';
import { endOf, OpenResponse } from './open-responses.ts';
import { retryText } from './sse.ts';

/** The request may have had effects, so its client must learn that it has run. */
const UNREAD =
  'the request has ended, but its response does not fit beside those that clients have not read. Read responses faster, or request less at once';
/** The error if the store rejects the data that a response rests on. */
const UNSAVED = 'the server cannot persist the result, so it cannot send it. Retry later with the same id';

/** The services that an exchange uses. */
export interface ExchangeHost {
  readonly host: Pick<TransportHost, 'bus' | 'clock' | 'refusal' | 'retained'>;
  readonly options: Pick<ResolvedHttpOptions, 'response'>;
  /** Words the challenges of rejections; undefined without authentication. */
  readonly authenticator: HttpAuthenticator | undefined;
  readonly answers: CommonHeaders;
  /** The exchange is settled and its response has closed. */
  over(exchange: PostExchange): void;
  /** Ends the session that this exchange was to open. */
  end(session: HttpSession, reason: string): void;
  /** Counts a request in a cell of this node. @returns a function that ends the count; undefined without a cluster */
  enterCell(cell: number): (() => void) | undefined;
}

export interface IncomingPost {
  readonly id: number;
  readonly principal: string;
  readonly request: HttpRequest;
  /** The content types that the client accepts. */
  readonly accepts: { readonly json: boolean; readonly sse: boolean };
  readonly connection: ConnectionId;
  readonly session: HttpSession | undefined;
  /** Its text, for the case that another node must serve it, or another process run it again. */
  readonly text: string | undefined;
  /** The stream that its answer continues, for a request that runs again. */
  readonly continues?: { readonly stream: EventStream; readonly earlier: readonly string[] } | undefined;
}

/** The status of an answer that the byte quota has no room for. */
const TOO_LONG_STATUS = 503;
const JSON_BODY = { 'content-type': 'application/json' } as const;
/** Answers of up to this number of characters count by the number of exchanges alone. */
const SMALL_ANSWER = 65_536;
/** The statuses after which a later retry can succeed (RFC 9110 section 10.2.3). */
const RETRY_AFTER: ReadonlySet<number> = new Set([429, 503]);

export class PostExchange extends OpenResponse implements Exchange {
  readonly id: number;
  readonly principal: string;
  readonly streams: boolean;
  readonly incoming: HttpRequest;
  request: RequestId | undefined = undefined;
  storesReply = false;
  repeatable = false;
  readonly earlier: readonly string[] | undefined;
  undecided = false;
  neededScopes: readonly string[] | undefined = undefined;
  readonly openedAt: number;
  /** The connection that receives its messages. An `initialize` moves to the connection of its session. */
  connection: ConnectionId;
  session: HttpSession | undefined;
  /** The session that this exchange opened. */
  opened: HttpSession | undefined;
  /** The answer was sent, or will never exist. */
  settled = false;
  readonly connections: ExchangeHost;
  /** Until the core has accepted its message, or until its stream stores it. */
  text: string | undefined;
  /** Another node serves its message, or may serve it. */
  elsewhere = false;
  cell: number | undefined;
  #leaveCell: (() => void) | undefined;
  readonly #json: boolean;
  readonly #sse: boolean;
  #stream: EventStream | undefined;
  /** The bytes of a long answer, until the response has closed. */
  #unread: Reservation | undefined;
  #ended = false;

  constructor(
    { id, principal, request, accepts, connection, session, text, continues }: IncomingPost,
    connections: ExchangeHost,
  ) {
    // A subscription ends with its token. Any other request ends with its answer.
    super(request.response, Number.POSITIVE_INFINITY);
    this.id = id;
    this.earlier = continues?.earlier;
    this.text = text;
    this.principal = principal;
    this.connection = connection;
    this.session = session;
    this.openedAt = connections.host.clock.now();
    this.connections = connections;
    this.incoming = request;
    this.#json = accepts.json && connections.options.response !== 'sse';
    this.#sse = accepts.sse && connections.options.response !== 'json';
    this.streams = accepts.sse;
    if (!continues) {
      this.response.listener = this;
      return;
    }
    // The request for the rest of its stream has the response.
    this.#stream = continues.stream;
    this.gone = true;
  }

  get resourceMetadata(): string | undefined {
    return this.connections.authenticator?.resourceMetadata;
  }

  /** True if its stream may have to store its text. */
  get mayStore(): boolean {
    return this.session !== undefined && (this.repeatable || this.undecided);
  }

  enter(cell: number): void {
    this.cell = cell;
    this.#leaveCell = this.connections.enterCell(cell);
  }

  /** Attaches the exchange to the session that its `initialize` opened. */
  adopt(session: HttpSession): void {
    this.session = session;
    this.opened = session;
    this.connection = session.connection;
  }

  /** Sends one message. `status` marks it as the answer; `stays` means that it needs a stream. */
  receive(text: string, status: number | undefined, stays = false, bytes?: Bytes): void {
    if (this.settled) return;
    if (stays) this.endsAt = endOf(this.incoming.auth, this.connections.host.clock);
    if (status !== undefined && text.length > SMALL_ANSWER && !this.gone) {
      // A body whose bytes are cached is shared by all clients.
      const excess = bytes && this.#json && !this.#stream ? undefined : this.#reserve(text);
      if (excess !== undefined)
        return this.receive(this.#error(ErrorCode.Overloaded, `${UNREAD}: ${excess}`), TOO_LONG_STATUS);
    }
    if (!this.#stream && !this.gone) {
      if (status !== undefined && (this.#json || status >= 400 || !this.#sse)) return this.#whole(status, text, bytes);
      if (this.#sse || (stays && this.streams)) this.#begin();
    }
    // Without a stream, the message precedes the one JSON body, or the client has disconnected: it is dropped.
    this.#stream?.send(text, false, status !== undefined);
    if (status !== undefined) this.#settle();
  }

  /**
   * The request was not rejected at once. If the response must be a stream, begin it now, so that its client can resume
   * it.
   */
  admitted(): void {
    if (this.undecided) return;
    if (this.elsewhere) return;
    if (this.connections.options.response === 'sse' && this.#sse && !this.settled && !this.#stream && !this.gone)
      this.#begin();
  }

  /** The POST contains nothing that needs an answer. */
  accepted(): void {
    if (this.settled) return;
    this.settled = true;
    const keeper = this.session?.keeper;
    if (keeper)
      keeper.gate(
        () => this.#answer(202, NO_HEADERS, undefined),
        (why) => this.#unsaved(why),
      );
    else this.#answer(202, NO_HEADERS, undefined);
  }

  /** Its requests were cancelled: ends the response without an answer. */
  unanswered(): void {
    if (this.settled) return;
    this.settled = true;
    if (!this.#stream && !this.gone) {
      if (this.#sse) {
        this.response.begin(200, this.#headers(EVENT_STREAM, 200));
        this.response.end();
      } else this.response.send(202, this.#headers(undefined, 202), undefined);
    }
    this.#settle();
  }

  /** Rejects the POST before the core has processed it. */
  refuse(status: number, text: string): void {
    if (!this.settled) this.#whole(status, text);
  }

  override cut(): void {
    this.settled = true;
    super.cut();
  }

  /** Disconnects the client, which reconnects for the rest after so many milliseconds. */
  release(retryMs: number): void {
    if (this.settled || !this.session?.dialect.resumableStreams) return;
    if (!this.#stream) {
      if (this.gone || !this.#sse || !this.session.dialect.primesStreams) return;
      this.#begin(retryMs);
    }
    this.#stream?.release(retryMs, this.connections.host.clock.now());
  }

  protected override keepAlive(now: number, keepAliveMs: number): void {
    if (this.settled) return;
    if (this.#stream) this.#stream.keepAlive();
    else if (this.#sse && !this.undecided && now - this.openedAt >= keepAliveMs) this.#begin();
  }

  expire(retryMs: number, now: number): void {
    if (this.gone || this.settled) return;
    this.response.write(retryText(retryMs));
    // Its client disconnects with that, which cancels the subscription.
    if (this.#stream) this.#stream.finish(now);
    else this.response.end();
  }

  override drained(): void {
    super.drained();
    this.#stream?.drained();
  }

  closed(): void {
    this.gone = true;
    this.#unread?.release();
    this.#unread = undefined;
    const { bus, clock } = this.connections.host;
    if (this.#stream && this.session) this.session.detachReader(this.response, this.#stream, clock.now());
    if (this.settled) return this.#over();
    // A session's request continues (2025-11-25 transports, "Sending Messages to the Server"). Any other request is
    // cancelled here.
    if (this.session) return;
    bus.emit('connection.left', { connection: this.connection, exchange: this });
    // Release messages that were held back for a slow reader: the reader has disconnected.
    this.#stream?.drained();
  }

  /** Counts an answer until its client has read it. @returns the exceeded limit */
  #reserve(text: string): string | undefined {
    const taken = this.connections.host.retained.reserve(this.principal, heapBytes(text), this.session?.id);
    if (isExcess(taken)) return taken.message;
    this.#unread = taken;
    return undefined;
  }

  #begin(retryMs?: number): void {
    this.#stream =
      this.session?.open(this, this.request, this.repeatable ? this.text : undefined) ??
      new EventStream(undefined, (slow) => reportPace(this.connections.host.bus, this.connection, this, slow));
    this.response.begin(200, this.#headers(EVENT_STREAM, 200));
    this.#stream.attach(this.response, retryMs);
  }

  #whole(status: number, text: string, bytes?: Bytes): void {
    if (this.earlier) {
      this.#stream?.send(text, false, true);
      return this.#settle();
    }
    this.settled = true;
    const keeper = this.session?.keeper;
    if (!keeper) return this.#answer(status, JSON_BODY, text, bytes);
    const answer = (): void => this.#answer(status, JSON_BODY, text, bytes);
    const unsaved = (why: string): void => this.#unsaved(why);
    if (this.storesReply) keeper.gate(answer, unsaved);
    else keeper.readGate(answer, unsaved);
  }

  #answer(status: number, headers: Headers, text: string | undefined, bytes?: Bytes): void {
    this.response.send(status, this.#headers(headers, status), text, bytes);
    this.#settle();
  }

  /** The store could not persist the outcome: the client gets an error instead of it. */
  #unsaved(why: string): void {
    this.#answer(503, JSON_BODY, this.#error(ErrorCode.InternalError, `${UNSAVED}: ${why}`));
    // A session that the store could not persist has not opened.
    if (this.opened && this.session) this.connections.end(this.session, UNSAVED);
  }

  /** The text of an error for its request. */
  #error(code: ErrorCodeValue, message: string): string {
    return this.connections.host.refusal(code, message, this.request);
  }

  #settle(): void {
    this.settled = true;
    const now = this.connections.host.clock.now();
    this.#stream?.finish(now);
    this.session?.release(now);
    if (this.gone) this.#over();
  }

  #over(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#leaveCell?.();
    this.connections.over(this);
  }

  /** The header that names the scopes which a rejected request needs. */
  #challenge(): Headers | undefined {
    const { authenticator } = this.connections;
    if (!this.neededScopes || !authenticator) return undefined;
    try {
      return { 'www-authenticate': challengeOf(authenticator, this.neededScopes) };
    } catch (error) {
      // The client still gets its rejection.
      this.connections.host.bus.emit('fault', { where: 'http.auth', error });
      return undefined;
    }
  }

  #headers(own: Headers | undefined, status: number): Headers {
    const common = this.connections.answers.headers(this.incoming);
    // A session whose `initialize` was rejected has not opened.
    const more = this.opened && status === 200 ? { ...common, 'mcp-session-id': this.opened.id } : common;
    const later = RETRY_AFTER.has(status) ? { 'retry-after': '1' } : status === 403 ? this.#challenge() : undefined;
    return more || later ? { ...own, ...more, ...later } : (own ?? NO_HEADERS);
  }
}

const NO_HEADERS: Headers = {};
