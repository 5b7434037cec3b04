/** The open connections of HTTP clients: the shared connection, sessions, and streams. Connects them to the bus. */
import { eachInSlices } from '../kernel/clock.ts';
import type { Quota } from '../kernel/quota.ts';
import type { Auth } from '../messages/auth.ts';
import type { LeavingCells } from '../messages/cell-holder.ts';
import type { ConnectionEvents, ConnectionId, Exchange } from '../messages/connection-events.ts';
import { isOfCells } from '../protocol/cell.ts';
import { ErrorCode } from '../protocol/errors.ts';
import type { TransportHost } from '../transports/transport.ts';
import { type InterruptedRequest, MAX_STORED_REQUEST } from './durable-stream.ts';
import type { EventStream } from './event-stream.ts';
import { type ExchangeHost, type IncomingPost, PostExchange } from './exchange.ts';
import { type EndpointNodes, ForwardedRequest, type ForwardingHost, type Misplaced } from './forwarded-request.ts';
import { GetStream } from './get-stream.ts';
import type { HttpAuthenticator } from './http-authenticator.ts';
import type { CommonHeaders, Headers, HttpRequest, HttpResponse } from './http-message.ts';
import type { ResolvedHttpOptions } from './http-options.ts';
import { HttpSession } from './http-session.ts';
import { endOf, OpenResponses } from './open-responses.ts';
import type { NodeEntry } from './other-nodes.ts';
import { SessionWakeup, type WakingHost } from './session-wakeup.ts';
import { SseStream, type SseStreamHost } from './sse-2024-11-05.ts';
import { Sweeper } from './sweeper.ts';

/** The error for a request whose process died and that may not run again, for a client that resumes its stream. */
const LOST =
  'the server restarted while this request ran. The request may or may not have completed; its outcome is unknown';

/** The state of a stream after a given event. */
type EndedConnection = 'the rest' | 'no more' | 'unknown';

export class HttpConnections implements ExchangeHost, WakingHost, SseStreamHost {
  readonly host: TransportHost;
  readonly options: ResolvedHttpOptions;
  readonly authenticator: HttpAuthenticator | undefined;
  readonly answers: CommonHeaders;
  /** The other nodes; undefined without a cluster. */
  readonly nodes: NodeEntry | undefined;
  readonly #forwarding: ForwardingHost | undefined;
  readonly #exchanges: Quota;
  readonly #open = new OpenResponses();
  readonly #sessions = new Map<string, HttpSession>();
  readonly #sessionOf = new Map<ConnectionId, HttpSession>();
  readonly #old = new Map<string, SseStream>();
  readonly #oldOf = new Map<ConnectionId, SseStream>();
  readonly #unsubscribe: readonly (() => void)[];
  #shared: ConnectionId;
  /** A forwarded request has its response. */
  #onAnswer: () => void = () => {};
  #lastExchange = 0;
  readonly #sweeper: Sweeper;
  readonly waking: SessionWakeup;

  constructor(
    options: ResolvedHttpOptions,
    exchanges: Quota,
    host: TransportHost,
    answers: CommonHeaders & Pick<ForwardingHost, 'leaving' | 'refuse'>,
    authenticator: HttpAuthenticator | undefined,
    cluster: EndpointNodes | undefined,
  ) {
    this.options = options;
    this.#exchanges = exchanges;
    this.host = host;
    this.answers = answers;
    this.authenticator = authenticator;
    this.nodes = cluster?.nodes;
    this.#forwarding = cluster && {
      ...{ host, ...cluster },
      connection: () => this.#shared,
      refuse: (request, refusal, code) => answers.refuse(request, refusal, code),
      leaving: () => answers.leaving(),
      begun: () => this.#onAnswer(),
      stayed: (forwarded) => {
        this.#open.remove(forwarded);
        this.#onAnswer();
      },
      over: (forwarded) => {
        this.#open.remove(forwarded);
        this.#onAnswer();
        const { request, principal } = forwarded.misplaced;
        if (request.method !== 'DELETE') this.#exchanges.remove(principal);
      },
    };
    this.#unsubscribe = this.#subscribe();
    this.#shared = this.#openShared();
    this.waking = new SessionWakeup(this);
    this.#sweeper = new Sweeper({
      host,
      options,
      open: this.#open,
      sessions: () => this.#sessions.values(),
      end: (session, reason) => this.end(session, reason),
      sleep: (session) => this.#sleep(session, 'idle: hibernating'),
    });
  }

  /** Finds a session. Unknown ids and other principals' sessions are indistinguishable to the caller. */
  session(id: string, principal: string): HttpSession | undefined {
    const session = this.#sessions.get(id);
    return session?.principal === principal ? session : undefined;
  }

  /** Removes a session from memory. Its next request restores it. */
  #sleep(session: HttpSession, reason: string): void {
    if (!this.#forget(session)) return;
    session.keeper?.sleep();
    this.host.bus.emit('connection.closed', { connection: session.connection, reason, hibernates: true });
  }

  /** Passes a text to the core. The answers find their way back through the exchange. */
  post(
    request: HttpRequest,
    text: string,
    accepts: { readonly json: boolean; readonly sse: boolean },
    principal: string,
    session: HttpSession | undefined,
  ): void {
    // The client may have disconnected while the session was read: nothing reports that again.
    const { gone } = request.response;
    this.#lastExchange += 1;
    const connection = session?.connection ?? this.#shared;
    const isKept = session
      ? session.keeper !== undefined && text.length <= MAX_STORED_REQUEST
      : this.#forwarding !== undefined;
    const kept = isKept ? text : undefined;
    const post = { id: this.#lastExchange, principal, request, accepts, connection, session, text: kept };
    const exchange = this.#serve(post, text);
    if (exchange.text !== undefined && !exchange.elsewhere && !exchange.mayStore) exchange.text = undefined;
    exchange.admitted();
    if (gone) exchange.closed();
  }

  /** Counts a request in a cell of this node. */
  enterCell(cell: number): (() => void) | undefined {
    return this.nodes?.enter(cell);
  }

  #serve(post: IncomingPost, text: string): PostExchange {
    const { connection, session } = post;
    const exchange = new PostExchange(post, this);
    this.#open.add(exchange);
    if (session) {
      session.busy += 1;
      if (this.#forwarding && session.cell !== undefined) exchange.enter(session.cell);
    }
    this.host.bus.emit('connection.text', { connection, text, exchange });
    return exchange;
  }

  /**
   * Runs a request again whose process ended before its answer, on the stream that its client resumes. A request that may
   * not run twice gets an error.
   *
   * @returns the exchange of the second run
   */
  interrupted(
    session: HttpSession,
    stream: EventStream,
    { id, text, sent }: InterruptedRequest,
    request: HttpRequest,
  ): Exchange | undefined {
    const { connection, principal } = session;
    if (text === undefined || this.#exchanges.excess(principal)) {
      stream.send(this.host.refusal(ErrorCode.InternalError, LOST, id), false, true);
      stream.finish(this.host.clock.now());
      return undefined;
    }
    this.#exchanges.add(principal);
    this.#lastExchange += 1;
    const accepts = { json: false, sse: true };
    const continues = { stream, earlier: sent };
    const post = {
      id: this.#lastExchange,
      principal,
      request,
      accepts,
      connection,
      session,
      text: undefined,
      continues,
    };
    return this.#serve(post, text);
  }

  /** True if another node serves a request for this cell, or may serve it. */
  isElsewhere(cell: number | undefined): cell is number {
    return cell !== undefined && this.nodes !== undefined && this.nodes.placeOf(cell).at !== 'here';
  }

  /** Forwards a request to the owner of its cell, or serves it here if this node owns the cell by then. */
  forward(misplaced: Misplaced): void {
    if (!this.#forwarding) return misplaced.here();
    const forwarded = new ForwardedRequest(misplaced, this.#forwarding);
    this.#open.add(forwarded);
    forwarded.begin();
  }

  /** The core has found out that another node serves the request of an exchange. */
  #elsewhere(exchange: PostExchange, { cell, repeatable, here }: ConnectionEvents['connection.elsewhere']): void {
    const { text = '', incoming: request, principal } = exchange;
    exchange.elsewhere = true;
    this.#open.remove(exchange);
    this.forward({
      ...{ request, principal, cell, text, repeatable },
      here: () => {
        exchange.elsewhere = false;
        exchange.text = undefined;
        request.response.listener = exchange;
        this.#open.add(exchange);
        exchange.enter(cell);
        here();
        exchange.admitted();
      },
    });
  }

  /** Attaches a GET to the session's own messages. @returns false if the session has too many readers */
  listen({ auth, response }: HttpRequest, session: HttpSession, headers: Headers): boolean {
    if (!session.takesReaders) return false;
    this.#read(this.#getStream(session, response, undefined, auth));
    response.begin(200, headers);
    session.listen(response);
    return true;
  }

  /**
   * Attaches a GET to a stream, after the event with this id. @returns the state of the stream; `unknown` if the event
   * has expired
   */
  resume({ auth, response }: HttpRequest, session: HttpSession, eventId: string, headers: Headers): EndedConnection {
    const found = session.find(eventId);
    if (!found) return 'unknown';
    if (found.stream.saidAllBy(found.seq)) return 'no more';
    this.#read(this.#getStream(session, response, found.stream, auth));
    response.begin(200, headers);
    session.resume(found.stream, response, found.seq);
    return 'the rest';
  }

  #getStream(
    session: HttpSession,
    response: HttpResponse,
    stream: EventStream | undefined,
    auth: Auth | undefined,
  ): GetStream {
    const { clock } = this.host;
    return new GetStream(session, response, stream, endOf(auth, clock), () => clock.now(), this.#readerGone);
  }

  /** Ends a session with its streams and running requests. */
  end(session: HttpSession, reason: string): void {
    if (!this.#forget(session)) return;
    session.end(undefined, this.host.clock.now());
    this.host.bus.emit('connection.closed', { connection: session.connection, reason });
    session.keeper?.end();
    // The requests in flight get no answers any more.
    if (session.busy > 0)
      for (const open of this.#open.all())
        if (open instanceof PostExchange && open.session === session) open.unanswered();
  }

  /** Opens a stream of 2024-11-05. */
  openOld(request: HttpRequest, principal: string, headers: Headers): void {
    const connection = this.host.connectionId();
    const stream = new SseStream(
      {
        id: this.host.streamId(),
        connection,
        principal,
        endsAt: endOf(request.auth, this.host.clock),
        response: request.response,
      },
      this,
    );
    this.#open.add(stream);
    this.#old.set(stream.id, stream);
    this.#oldOf.set(connection, stream);
    stream.begin(endpointOf(request, stream.id), headers);
    this.host.bus.emit('connection.opened', { connection, transport: 'http+sse', principal });
  }

  /** Passes on a text that was posted for such a stream. @returns false if this principal has no such stream */
  oldText(id: string, principal: string, text: string, auth: Auth | undefined): boolean {
    const stream = this.#old.get(id);
    if (stream?.principal !== principal) return false;
    stream.endsAt = Math.max(stream.endsAt, endOf(auth, this.host.clock));
    this.host.bus.emit('connection.text', { connection: stream.connection, text, auth });
    return true;
  }

  /**
   * Ends every stream and asks the clients of resumable streams to reconnect. Drops all unanswered requests. In slices,
   * because ending thousands of streams takes as long as a broadcast.
   */
  async close(): Promise<void> {
    await this.#forwardedAnswered();
    this.waking.end();
    this.#sweeper.end();
    const { bus, clock } = this.host;
    const now = clock.now();
    const reason = 'the server is closing';
    await eachInSlices(clock, this.#sessions.values(), (session) => {
      this.#forget(session);
      session.end(this.options.retryMs, now);
      bus.emit('connection.closed', { connection: session.connection, reason });
    });
    await eachInSlices(clock, this.#old.values(), (stream) => stream.end());
    bus.emit('connection.closed', { connection: this.#shared, reason });
    await eachInSlices(clock, this.#open.all(), (open) => {
      if (open instanceof PostExchange) open.unanswered();
      else if (open instanceof ForwardedRequest) open.end();
    });
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  /** Waits until the owners have answered the requests that this node has forwarded, or for the time that a request may wait. */
  async #forwardedAnswered(): Promise<void> {
    const answered = (): boolean =>
      !this.#open.all().some((open) => open instanceof ForwardedRequest && open.unanswered);
    if (!this.nodes || answered()) return;
    const { waitMs } = this.nodes;
    await new Promise<void>((resolve) => {
      const late = this.host.clock.after(waitMs, resolve);
      this.#onAnswer = () => {
        if (!answered()) return;
        late.cancel();
        resolve();
      };
    });
  }

  #openShared(): ConnectionId {
    const connection = this.host.connectionId();
    this.host.bus.emit('connection.opened', { connection, transport: 'http', shared: true });
    return connection;
  }

  #subscribe(): readonly (() => void)[] {
    const { bus } = this.host;
    const mine = (exchange: Exchange | undefined): PostExchange | undefined =>
      exchange instanceof PostExchange && exchange.connections === this ? exchange : undefined;
    return [
      bus.on('connection.send', ({ connection, text, about, status, bytes }) => {
        const exchange = about.kind === 'session' ? undefined : mine(about.exchange);
        if (exchange) return exchange.receive(text, status, about.kind === 'request' && about.stays, bytes);
        const session = this.#sessionOf.get(connection);
        if (session) return session.say(text);
        this.#oldOf.get(connection)?.send(text);
      }),
      bus.on('connection.elsewhere', (event) => {
        const exchange = mine(event.exchange);
        if (exchange) this.#elsewhere(exchange, event);
      }),
      bus.on('connection.admitted', ({ exchange }) => mine(exchange)?.admitted()),
      bus.on('connection.accepted', ({ exchange }) => mine(exchange)?.accepted()),
      bus.on('connection.unanswered', ({ exchange }) => mine(exchange)?.unanswered()),
      bus.on('connection.release', ({ exchange, retryMs }) => mine(exchange)?.release(retryMs)),
      bus.on('connection.session', (event) => this.#opened(event, mine(event.exchange))),
      bus.on('connection.end', ({ connection, reason }) => this.#ended(connection, reason)),
      bus.on('cells.leaving', (leaving) => this.#leave(leaving)),
    ];
  }

  /** Lets go of the sessions and streams in cells that another process takes over. */
  #leave({ cells, flush, settling }: LeavingCells): void {
    const isLeaving = ({ id }: { readonly id: string }): boolean => isOfCells(cells, id);
    for (const old of [...this.#old.values()].filter(isLeaving)) flush ? old.end() : old.cut();
    const sessions = new Set([...this.#sessions.values()].filter(isLeaving));
    if (sessions.size === 0) return;
    const now = this.host.clock.now();
    for (const open of this.#open.all()) {
      const isReader = open instanceof GetStream;
      if (!(isReader || open instanceof PostExchange) || !open.session || !sessions.has(open.session)) continue;
      if (!flush) open.cut();
      // Its client reconnects, to the next owner.
      else if (isReader) open.expire(this.options.retryMs, now);
    }
    if (flush) settling.push(eachInSlices(this.host.clock, sessions, (session) => this.#move(session)));
    else for (const session of sessions) this.#cut(session);
  }

  /** Hibernates a session that moves. Its requests that still run end without an answer. */
  #move(session: HttpSession): void {
    session.end(this.options.retryMs, this.host.clock.now());
    this.#sleep(session, 'another node takes it over');
    if (session.busy === 0) return;
    for (const open of this.#open.all())
      if (open instanceof PostExchange && open.session === session) open.unanswered();
  }

  /** Removes a session from memory without a write. */
  #cut(session: HttpSession): void {
    if (!this.#forget(session)) return;
    const reason = 'another node has taken it over';
    this.host.bus.emit('connection.closed', { connection: session.connection, reason, hibernates: true });
  }

  /** Attaches the session that an exchange opened. */
  #opened(
    { opened, session: id, dialect, keeper }: ConnectionEvents['connection.session'],
    exchange: PostExchange | undefined,
  ): void {
    if (!exchange) return;
    const { principal } = exchange;
    const now = this.host.clock.now();
    const session = new HttpSession({ id, principal, dialect, keeper }, this, now);
    this.enter(session, opened);
    session.busy += 1;
    exchange.adopt(session);
  }

  enter(session: HttpSession, connection: ConnectionId): void {
    session.connection = connection;
    this.#sessions.set(session.id, session);
    this.#sessionOf.set(connection, session);
    session.used(this.host.clock.now());
  }

  /** Handles a connection that the core ended. */
  #ended(connection: ConnectionId, reason: string): void {
    const session = this.#sessionOf.get(connection);
    if (session) return this.end(session, reason);
    const old = this.#oldOf.get(connection);
    if (old) return old.end();
    if (connection !== this.#shared) return;
    // Open a new shared connection, so that the next client is served in any case.
    this.#shared = this.#openShared();
    this.host.log(
      'error',
      `http: the connection that clients without a session share has ended (${reason}); a new one is open`,
    );
    this.host.bus.emit('connection.closed', { connection, reason });
    const text = this.host.refusal(ErrorCode.InternalError, 'the server failed. The request may or may not have run');
    for (const open of this.#open.all())
      if (open instanceof PostExchange && open.connection === connection) open.refuse(500, text);
  }

  over(exchange: PostExchange): void {
    this.#open.remove(exchange);
    this.#exchanges.remove(exchange.principal);
  }

  #read(stream: GetStream): void {
    this.#open.add(stream);
    stream.session.busy += 1;
  }

  readonly #readerGone = (stream: GetStream): void => {
    this.#open.remove(stream);
    this.#exchanges.remove(stream.principal);
    stream.session.release(this.host.clock.now());
  };

  gone(stream: SseStream): void {
    this.#open.remove(stream);
    this.#exchanges.remove(stream.principal);
    this.#old.delete(stream.id);
    this.#oldOf.delete(stream.connection);
    this.host.bus.emit('connection.closed', { connection: stream.connection, reason: 'the client disconnected' });
  }

  #forget(session: HttpSession): boolean {
    this.#sessionOf.delete(session.connection);
    if (!this.#sessions.delete(session.id)) return false;
    session.leave();
    return true;
  }
}

/**
 * Clients that append the endpoint to the address of the server instead of resolving it against the address of the stream: those
 * of the official Java SDK (`HttpClientSseClientTransport`, and `WebFluxSseClientTransport` of Spring).
 */
const APPENDS_ENDPOINT = /^(?:Java-http-client|ReactorNetty)\//;

/**
 * The endpoint of an HTTP+SSE stream: a reference relative to the address of the stream (RFC 3986 section 5.2), because a proxy
 * may serve that address under a prefix which this server does not see. A reference of only a query resolves correctly also
 * in clients that take any other text for an absolute path. It repeats the query of the stream, which may contain the key by
 * which an author authenticates.
 */
function endpointOf(request: Pick<HttpRequest, 'url' | 'header'>, stream: string): string {
  const [whole = '', path = '', query = ''] = /^([^?]*)\??([!-~]*)/.exec(request.url) ?? [];
  const kept = whole === request.url ? query.split('&').filter((each) => each !== '' && !each.startsWith('sse=')) : [];
  const before = APPENDS_ENDPOINT.test(request.header('user-agent') ?? '') ? path : '';
  return `${before}?${[...kept, `sse=${stream}`].join('&')}`;
}
