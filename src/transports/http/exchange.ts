/** One POST and the response that carries its answers, as one JSON body or as an event stream. */
import type { Auth } from '../../messages/auth.ts';
import type { Bytes, ConnectionId, Exchange } from '../../messages/connection-events.ts';
import { heapBytes } from '../../protocol/heap.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import { isExcess, type Quota, type Reservation } from '../../quota.ts';
import { type ClientStream, EVENT_STREAM, EventStream } from './event-stream.ts';
import { challengeOf, type HttpAuthenticator } from './http-authenticator.ts';
import type { Headers, HttpListener, HttpRequest, HttpResponse } from './http-message.ts';
import type { HttpSession } from './http-session.ts';
import type { Open } from './open-list.ts';
import { retryText } from './sse.ts';
import { StallDetector } from './stall-detector.ts';

/** The services that an exchange uses. */
export interface ExchangeHost {
  readonly response: 'auto' | 'json' | 'sse';
  /** Words the challenges of rejections; undefined without authentication. */
  readonly authenticator: HttpAuthenticator | undefined;
  /** The byte quota, in which a long answer counts until its client has read it. */
  readonly retained: Quota;
  now(): number;
  /** The time at which a stream of this caller ends. */
  endOf(auth: Auth | undefined): number;
  /** Reports that the client of an exchange reads slowly, or that it has caught up. */
  pace(connection: ConnectionId, reader: Exchange, slow: boolean): void;
  /** The client disconnected before its answer. */
  disconnected(exchange: PostExchange): void;
  /** The answer was written to the response, or will never exist. */
  settled(exchange: PostExchange): void;
  /** The text of the error for an answer that the byte quota has no room for. */
  tooLong(why: string, request: RequestId | undefined): string;
  /** The text of the error for a response that the store could not persist. */
  unsaved(why: string, request: RequestId | undefined): string;
  /** The store could not persist the session that this exchange was to open. */
  failed(session: HttpSession): void;
  /** Counts a request in a cell of this node. @returns a function that ends the count; undefined without a cluster */
  enter(cell: number): (() => void) | undefined;
  /** The exchange is settled and its response has closed. */
  over(exchange: PostExchange): void;
  /** Reports an error of the authenticator. */
  broken(error: unknown): void;
  /** Headers of the response, in addition to those of its kind. */
  headers(exchange: PostExchange, status: number): Headers | undefined;
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
  readonly continues?: { readonly stream: ClientStream; readonly earlier: readonly string[] } | undefined;
}

/** The status of an answer that the byte quota has no room for. */
const TOO_LONG_STATUS = 503;
const JSON_BODY = { 'content-type': 'application/json' } as const;
/** Answers of up to this number of characters count by the number of exchanges alone. */
const SMALL_ANSWER = 65_536;
/** The statuses after which a later retry can succeed (RFC 9110 section 10.2.3). */
const RETRY_AFTER: ReadonlySet<number> = new Set([429, 503]);

export class PostExchange implements Exchange, HttpListener, Open {
  readonly id: number;
  readonly principal: string;
  readonly streams: boolean;
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
  /** The time by which a subscription ends with its token. Any other request ends with its answer. */
  endsAt = Number.POSITIVE_INFINITY;
  before: Open | undefined;
  after: Open | undefined;
  readonly host: ExchangeHost;
  /** Until the core has accepted its message, or until its stream stores it. */
  text: string | undefined;
  /** Another node serves its message, or may serve it. */
  elsewhere = false;
  cell: number | undefined;
  #leaveCell: (() => void) | undefined;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  readonly #json: boolean;
  readonly #sse: boolean;
  #stream: ClientStream | undefined;
  /** The client disconnected. */
  #gone = false;
  #stall: StallDetector | undefined;
  /** The bytes of a long answer, until the response has closed. */
  #unread: Reservation | undefined;
  #ended = false;

  constructor(
    { id, principal, request, accepts, connection, session, text, continues }: IncomingPost,
    host: ExchangeHost,
  ) {
    this.id = id;
    this.earlier = continues?.earlier;
    this.text = text;
    this.principal = principal;
    this.connection = connection;
    this.session = session;
    this.openedAt = host.now();
    this.host = host;
    this.#request = request;
    this.#response = request.response;
    this.#json = accepts.json && host.response !== 'sse';
    this.#sse = accepts.sse && host.response !== 'json';
    this.streams = accepts.sse;
    if (!continues) {
      this.#response.listener = this;
      return;
    }
    // The request for the rest of its stream has the response.
    this.#stream = continues.stream;
    this.#gone = true;
  }

  get resourceMetadata(): string | undefined {
    return this.host.authenticator?.resourceMetadata;
  }

  /** True if its stream may have to store its text. */
  get mayStore(): boolean {
    return this.session !== undefined && (this.repeatable || this.undecided);
  }

  get incoming(): HttpRequest {
    return this.#request;
  }

  enter(cell: number): void {
    this.cell = cell;
    this.#leaveCell = this.host.enter(cell);
  }

  get auth(): Exchange['auth'] {
    return this.#request.auth;
  }

  get version(): string | undefined {
    return this.#request.version;
  }

  get remoteAddress(): string | undefined {
    return this.#request.remoteAddress;
  }

  get localAddress(): string | undefined {
    return this.#request.localAddress;
  }

  get localPort(): number | undefined {
    return this.#request.localPort;
  }

  get hop(): Exchange['hop'] {
    return this.#request.hop;
  }

  header(name: string): string | undefined {
    return this.#request.header(name);
  }

  repeats(name: string): boolean {
    return this.#request.repeats(name);
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
    if (stays) this.endsAt = this.host.endOf(this.auth);
    if (status !== undefined && text.length > SMALL_ANSWER && !this.#gone) {
      // A body whose bytes are cached is shared by all clients.
      const excess = bytes && this.#json && !this.#stream ? undefined : this.#reserve(text);
      if (excess !== undefined) return this.receive(this.host.tooLong(excess, this.request), TOO_LONG_STATUS);
    }
    if (!this.#stream && !this.#gone) {
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
    if (this.host.response === 'sse' && this.#sse && !this.settled && !this.#stream && !this.#gone) this.#begin();
  }

  /** The POST contains nothing that needs an answer. */
  accepted(): void {
    if (this.settled) return;
    this.settled = true;
    const keeper = this.session?.keeper;
    if (keeper)
      keeper.gate(
        () => this.#answer(202, NOTHING, undefined),
        (why) => this.#unsaved(why),
      );
    else this.#answer(202, NOTHING, undefined);
  }

  /** Its requests were cancelled: ends the response without an answer. */
  unanswered(): void {
    if (this.settled) return;
    this.settled = true;
    if (!this.#stream && !this.#gone) {
      if (this.#sse) {
        this.#response.begin(200, this.#headers(EVENT_STREAM, 200));
        this.#response.end();
      } else this.#response.send(202, this.#headers(undefined, 202), undefined);
    }
    this.#settle();
  }

  /** Rejects the POST before the core has processed it. */
  refuse(status: number, text: string): void {
    if (!this.settled) this.#whole(status, text);
  }

  /** Disconnects the client without another byte: another node owns the session now. */
  cut(): void {
    this.settled = true;
    this.#response.destroy();
  }

  /** Disconnects the client, which reconnects for the rest after so many milliseconds. */
  release(retryMs: number): void {
    if (this.settled || !this.session?.dialect.resumableStreams) return;
    if (!this.#stream) {
      if (this.#gone || !this.#sse || !this.session.dialect.primesStreams) return;
      this.#begin(retryMs);
    }
    this.#stream?.release(retryMs, this.host.now());
  }

  /** Maintains an open response. @returns false if its client read nothing for too long and was disconnected */
  tend(now: number, keepAliveMs: number, stallMs: number): boolean {
    if (this.#gone) return true;
    if (this.#response.pending > 0 || this.#stall) {
      this.#stall ??= new StallDetector();
      if (this.#stall.stalled(this.#response.pending, now, stallMs)) {
        this.#response.destroy();
        return false;
      }
    }
    if (this.settled) return true;
    if (this.#stream) this.#stream.keepAlive();
    else if (this.#sse && !this.undecided && now - this.openedAt >= keepAliveMs) this.#begin();
    return true;
  }

  expire(retryMs: number, now: number): void {
    if (this.#gone || this.settled) return;
    this.#response.write(retryText(retryMs));
    // Its client disconnects with that, which cancels the subscription.
    if (this.#stream) this.#stream.finish(now);
    else this.#response.end();
  }

  drained(): void {
    this.#stall?.moved();
    this.#stream?.drained();
  }

  closed(): void {
    this.#gone = true;
    this.#unread?.release();
    this.#unread = undefined;
    if (this.#stream && this.session) this.session.detachReader(this.#response, this.#stream, this.host.now());
    if (this.settled) return this.#over();
    this.host.disconnected(this);
    // Release messages that were held back for a slow reader: the reader has disconnected.
    if (!this.session) this.#stream?.drained();
  }

  /** Counts an answer until its client has read it. @returns the exceeded limit */
  #reserve(text: string): string | undefined {
    const taken = this.host.retained.reserve(this.principal, heapBytes(text), this.session?.id);
    if (isExcess(taken)) return taken.message;
    this.#unread = taken;
    return undefined;
  }

  #begin(retryMs?: number): void {
    this.#stream =
      this.session?.open(this, this.request, this.repeatable ? this.text : undefined) ??
      new EventStream(undefined, (slow) => this.host.pace(this.connection, this, slow));
    this.#response.begin(200, this.#headers(EVENT_STREAM, 200));
    this.#stream.attach(this.#response, retryMs);
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
    this.#response.send(status, this.#headers(headers, status), text, bytes);
    this.#settle();
  }

  /** The store could not persist the outcome: the client gets an error instead of it. */
  #unsaved(why: string): void {
    const { session, request } = this;
    this.#answer(503, JSON_BODY, this.host.unsaved(why, request));
    // A session that the store could not persist has not opened.
    if (this.opened && session) this.host.failed(session);
  }

  #settle(): void {
    this.settled = true;
    this.#stream?.finish(this.host.now());
    this.host.settled(this);
    if (this.#gone) this.#over();
  }

  #over(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#leaveCell?.();
    this.host.over(this);
  }

  /** The header that names the scopes which a rejected request needs. */
  #challenge(): Headers | undefined {
    const { authenticator } = this.host;
    if (!this.neededScopes || !authenticator) return undefined;
    try {
      return { 'www-authenticate': challengeOf(authenticator, this.neededScopes) };
    } catch (error) {
      // The client still gets its rejection.
      this.host.broken(error);
      return undefined;
    }
  }

  #headers(own: Headers | undefined, status: number): Headers {
    const more = this.host.headers(this, status);
    const later = RETRY_AFTER.has(status) ? { 'retry-after': '1' } : status === 403 ? this.#challenge() : undefined;
    return more || later ? { ...own, ...more, ...later } : (own ?? NOTHING);
  }
}

const NOTHING: Headers = {};
