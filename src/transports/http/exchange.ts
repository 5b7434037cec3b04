/** One POST: what came in, and the response that carries its answers, as one JSON body or as a stream of events. */
import type { Bytes, ConnectionId, Exchange } from '../../messages/connection-events.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import { type ClientStream, EVENT_STREAM, EventStream } from './event-stream.ts';
import type { Headers, HttpListener, HttpRequest, HttpResponse } from './http-message.ts';
import type { HttpSession } from './http-session.ts';
import type { Open } from './open-list.ts';
import { StallDetector } from './stall-detector.ts';

/** What an exchange is lent. */
export interface ExchangeHost {
  readonly response: 'auto' | 'json' | 'sse';
  now(): number;
  /** Says that the client of an exchange reads slowly, or has caught up. */
  pace(connection: ConnectionId, reader: Exchange, slow: boolean): void;
  /** The client has gone before its answer. */
  left(exchange: PostExchange): void;
  /** The answer is with the response, or will never be. */
  settled(exchange: PostExchange): void;
  /** The text of the error for what the store did not take. */
  unsaved(why: string, request: RequestId | undefined): string;
  /** The session that it was to open could not be kept. */
  failed(session: HttpSession): void;
  /** It is settled, and its response is over. */
  over(exchange: PostExchange): void;
  /** Headers of its answer, beside those of its kind. */
  headers(exchange: PostExchange, status: number): Headers | undefined;
}

export interface IncomingPost {
  readonly id: number;
  readonly principal: string;
  readonly request: HttpRequest;
  /** What the client takes. */
  readonly accepts: { readonly json: boolean; readonly sse: boolean };
  readonly connection: ConnectionId;
  readonly session: HttpSession | undefined;
}

const JSON_BODY = { 'content-type': 'application/json' } as const;
/** The statuses after which asking again later helps (RFC 9110 section 10.2.3). */
const RETRY_AFTER: ReadonlySet<number> = new Set([429, 503]);

export class PostExchange implements Exchange, HttpListener, Open {
  readonly id: number;
  readonly principal: string;
  readonly streams: boolean;
  request: RequestId | undefined = undefined;
  storesReply = false;
  readonly openedAt: number;
  /** The connection that its messages go to: an `initialize` moves to the one of its session. */
  connection: ConnectionId;
  session: HttpSession | undefined;
  /** The session that it has opened itself. */
  opened: HttpSession | undefined;
  /** The answer was sent, or will never be. */
  settled = false;
  before: Open | undefined;
  after: Open | undefined;
  readonly host: ExchangeHost;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  readonly #json: boolean;
  readonly #sse: boolean;
  #stream: ClientStream | undefined;
  /** The client disconnected. */
  #gone = false;
  #stall: StallDetector | undefined;
  #ended = false;

  constructor({ id, principal, request, accepts, connection, session }: IncomingPost, host: ExchangeHost) {
    this.id = id;
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
    this.#response.listener = this;
  }

  header(name: string): string | undefined {
    return this.#request.header(name);
  }

  repeats(name: string): boolean {
    return this.#request.repeats(name);
  }

  /** The session that its `initialize` has opened. */
  adopt(session: HttpSession): void {
    this.session = session;
    this.opened = session;
    this.connection = session.connection;
  }

  /** Sends one message of its own; `status` says that it is the answer, `stays` that only a stream will do. */
  receive(text: string, status: number | undefined, stays = false, bytes?: Bytes): void {
    if (this.settled) return;
    if (!this.#stream && !this.#gone) {
      if (status !== undefined && (this.#json || status >= 400 || !this.#sse)) return this.#whole(status, text, bytes);
      if (this.#sse || (stays && this.streams)) this.#begin();
    }
    // Without a stream it is what comes before the one JSON body, or nobody is there any more.
    this.#stream?.send(text, false, status !== undefined);
    if (status !== undefined) this.#settle();
  }

  /** What could be refused at once was not: a response that is to be a stream begins, so that its client can come back to it. */
  admitted(): void {
    if (this.host.response === 'sse' && this.#sse && !this.settled && !this.#stream && !this.#gone) this.#begin();
  }

  /** Nothing of it is answered. */
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

  /** Refuses what it brought, before the core saw it. */
  refuse(status: number, text: string): void {
    if (!this.settled) this.#whole(status, text);
  }

  /** Lets go of the client, which comes back for the rest after so many milliseconds. */
  release(retryMs: number): void {
    if (this.settled || !this.session?.dialect.resumableStreams) return;
    if (!this.#stream) {
      if (this.#gone || !this.#sse || !this.session.dialect.primesStreams) return;
      this.#begin(retryMs);
    }
    this.#stream?.release(retryMs, this.host.now());
  }

  /** Looks after an open response. @returns false when its client has taken nothing for too long, and is dropped */
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
    else if (this.#sse && now - this.openedAt >= keepAliveMs) this.#begin();
    return true;
  }

  drained(): void {
    this.#stall?.moved();
    this.#stream?.drained();
  }

  closed(): void {
    this.#gone = true;
    if (this.#stream && this.session) this.session.left(this.#response, this.#stream, this.host.now());
    if (this.settled) return this.#over();
    this.host.left(this);
    // What was held back for a slow reader has nobody to wait for any more.
    if (!this.session) this.#stream?.drained();
  }

  #begin(retryMs?: number): void {
    this.#stream =
      this.session?.open(this, this.request) ??
      new EventStream(undefined, (slow) => this.host.pace(this.connection, this, slow));
    this.#response.begin(200, this.#headers(EVENT_STREAM, 200));
    this.#stream.attach(this.#response, retryMs);
  }

  #whole(status: number, text: string, bytes?: Bytes): void {
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

  /** What it came to could not be made durable: its client is told so, and not what that is. */
  #unsaved(why: string): void {
    const { session, request } = this;
    this.#answer(503, JSON_BODY, this.host.unsaved(why, request));
    // A session of which nothing is kept has not opened.
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
    this.host.over(this);
  }

  #headers(own: Headers | undefined, status: number): Headers {
    const more = this.host.headers(this, status);
    const later = RETRY_AFTER.has(status) ? { 'retry-after': '1' } : undefined;
    return more || later ? { ...own, ...more, ...later } : (own ?? NOTHING);
  }
}

const NOTHING: Headers = {};
