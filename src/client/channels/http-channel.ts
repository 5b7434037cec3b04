/** The HTTP channel of a client: one POST for each message, streams for responses, and the resumption of cut streams. */
import { Buffer } from 'node:buffer';
import type { Agent, ClientRequest } from 'node:http';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { LONGEST_TIMER_MS, type Timer } from '../../core/kernel/clock.ts';
import type { RequestId } from '../../core/protocol/jsonrpc.ts';
import { InFlightTable } from '../../core/requests/in-flight-table.ts';
import { isHeaderValue } from '../../features/oauth/issuers/header-text.ts';
import type { Authorization } from '../authorization.ts';
import type { CallFailure } from '../client-errors.ts';
import type { Channel, ChannelFailure, ChannelHost, ChannelMail, OutgoingMessage } from './channel.ts';
import { EventReader, type EventReaderOptions } from './event-reader.ts';
import { cut, EXCERPT_BYTES, excerpt, notMcp, readExcerpt, rejectionOf, tooLong } from './http-failures.ts';
import { discard, HttpOrigin, type OriginOptions, type OriginRequest, type OriginResponse } from './http-origin.ts';
import { isGone } from './lost-session.ts';

export interface HttpChannelOptions extends OriginOptions {
  /** Longest message, in bytes. */
  readonly maxMessageBytes: number;
  /** Maximum time in milliseconds until the response begins, for requests that are no calls (the session's stream, its end). */
  readonly connectMs: number;
  readonly authorization: Authorization | undefined;
  /** A session that another process has opened. It is not ended with this channel. */
  readonly resumed?: { readonly session: string; readonly revision: string } | undefined;
}

/** Attempts to resume a cut stream, without an event that has another id. */
const MAX_RESUMES = 5;
const DEFAULT_RETRY_MS = 1_000;
/** The shortest delay before a stream is resumed: `retry: 0` would poll without a pause. */
const SHORTEST_RETRY_MS = 200;
/** A stream of a session that was open for so long counts as opened, also without an event. */
const STEADY_MS = 5_000;
/** Milliseconds in which the stream of a session opens before other messages: some servers send no headers before an event. */
const STREAM_MS = 300;
/** The longest delay between attempts to open the stream of a session, unless the server asks for a longer one. */
const LONGEST_BACK_OFF_MS = 30_000;
/** Longest id of an event that is sent again, in bytes: servers bound their headers, many at 8 KiB in all. */
const MAX_EVENT_ID_BYTES = 4_096;
/** Milliseconds for the end of a session to reach the server. */
const DELETE_MS = 2_000;

/** A stream of the server, which may be cut and resumed. */
interface ResumableStream {
  request: ClientRequest | undefined;
  /** The timer before a cut stream is resumed. */
  retry: Timer | undefined;
  /** The id of the last event, with which a stream is resumed. */
  lastEventId: string;
  /** An event had an id that cannot be sent again. */
  unresumable: boolean;
  retryMs: number;
}

/** One request of the client and its response. */
interface HttpExchange extends ResumableStream {
  readonly message: OutgoingMessage;
  /** Consecutive attempts to resume without an event. */
  resumes: number;
  /** The response has arrived, or the request was given up. */
  done: boolean;
  /** The session of the request; undefined for a request of none. */
  session: string | undefined;
}

/** The stream of a legacy session for messages outside of any request. */
interface SessionStream extends ResumableStream {
  failures: number;
  /** The authorization that the server rejected for this stream. The stream opens again with another one. */
  rejected: string | undefined;
  /** The stream was open, and may open again. */
  opened: boolean;
}

export class HttpChannel implements Channel {
  readonly kind = 'http';
  readonly #options: HttpChannelOptions;
  readonly #agent: Agent;
  readonly #origin: HttpOrigin;
  readonly #exchanges = new InFlightTable<HttpExchange>(({ message }) => message.id ?? '');
  #host: ChannelHost | undefined;
  #session: string | undefined;
  #revision: string | undefined;
  #stream: SessionStream | undefined;
  #closed = false;
  /** The first messages of a legacy session. Other messages wait for both. */
  readonly #opening = new Set<'initialized' | 'stream'>();
  #streamLate: Timer | undefined;
  /** Messages of this turn of the event loop, or after the opening of a session. */
  readonly #unsent: HttpExchange[] = [];

  constructor(options: HttpChannelOptions) {
    this.#options = options;
    this.#session = options.resumed?.session;
    this.#revision = options.resumed?.revision;
    // Node's agent closes idle sockets a second before the server's announced keep-alive time, so that few requests
    // meet a socket that the server closes at the same moment.
    this.#agent = new options.nodeHttp.Agent({ keepAlive: true, scheduling: 'lifo', maxFreeSockets: 64 });
    this.#origin = new HttpOrigin({
      ...options,
      agent: this.#agent,
      tokenRejected: (challenge) => this.#report({ type: 'token rejected', challenge }),
    });
  }

  /** HTTP has no connection of its own: the first request finds out whether the server is there. */
  open(host: ChannelHost): void {
    this.#host = host;
    this.#options.clock.soon(() => this.#report({ type: 'opened' }));
  }

  send(message: OutgoingMessage): void {
    this.#revision = message.revision ?? this.#revision;
    if (message.method === 'initialize') {
      this.#opening.clear();
      this.#session = undefined;
      this.#origin.startOver();
      this.#closeStream();
    }
    const exchange = newExchange(message);
    if (message.id !== undefined) this.#exchanges.add(exchange);
    if (this.#opening.size > 0) return void this.#unsent.push(exchange);
    // Another socket may overtake this notification, and many servers reject requests that arrive before it.
    if (message.method === 'notifications/initialized') this.#opening.add('initialized');
    // A single call gains nothing from the wait.
    if (this.#exchanges.size <= 1) return this.#post(exchange);
    this.#unsent.push(exchange);
    if (this.#unsent.length === 1) this.#options.clock.soon(this.#sendTurn);
  }

  /**
   * Sends the messages of one turn of the event loop together: the first wakes the server, and the others find it awake.
   * With 32 calls in flight, a call takes 0.72 to 0.83 of the client's processor time (docs/performance.md).
   */
  readonly #sendTurn = (): void => {
    for (const exchange of this.#unsent.splice(0)) if (!exchange.done) this.#post(exchange);
  };

  abandon(id: RequestId): void {
    const exchange = this.#exchanges.get(id);
    if (!exchange) return;
    this.#end(exchange);
    exchange.request?.destroy();
  }

  position(id: RequestId): { readonly session: string; readonly lastEventId: string } | undefined {
    const { session, lastEventId = '' } = this.#exchanges.get(id) ?? {};
    return session === undefined || lastEventId === '' ? undefined : { session, lastEventId };
  }

  resume(message: OutgoingMessage, lastEventId: string): void {
    const exchange = newExchange(message);
    exchange.session = this.#session;
    exchange.lastEventId = lastEventId;
    this.#exchanges.add(exchange);
    this.#resume(exchange);
  }

  leave(): void {
    // A channel without a session ends none.
    this.#session = undefined;
    void this.close();
  }

  listen(): void {
    if (this.#stream || this.#closed) return;
    this.#stream = {
      request: undefined,
      retry: undefined,
      lastEventId: '',
      unresumable: false,
      retryMs: DEFAULT_RETRY_MS,
      failures: 0,
      rejected: undefined,
      opened: false,
    };
    // Many servers drop what they send before this stream is open, such as a question for the roots (typescript-sdk 1.x).
    if (this.#opening.size > 0) {
      this.#opening.add('stream');
      this.#streamLate = this.#options.clock.after(STREAM_MS, () => this.#begun('stream'));
    }
    this.#openStream(this.#stream);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    // Messages of this turn still leave, such as a cancellation.
    this.#opening.clear();
    this.#sendTurn();
    this.#closed = true;
    this.#host = undefined;
    const session = this.#session;
    for (const exchange of this.#exchanges.all()) {
      this.#end(exchange);
      exchange.request?.destroy();
    }
    this.#closeStream();
    // The client no longer needs the session (2025-11-25 transports, "Session Management").
    if (session !== undefined && session !== this.#options.resumed?.session) await this.#deleteSession();
    this.#agent.destroy();
  }

  // Requests

  #post(exchange: HttpExchange): void {
    if (this.#closed) return;
    const { message } = exchange;
    const opens = message.method === 'initialize';
    let authorization: string | undefined;
    this.#origin.send({
      method: 'POST',
      body: message.text,
      authorization: this.#authorizationOf(exchange),
      opens,
      ofSession: opens || (!message.sessionless && message.authorization === undefined),
      // A request with an id is sent again by the connection. A notification or an answer has no other sender.
      waitsForToken: message.id === undefined && message.authorization === undefined,
      lateMs: message.id === undefined ? this.#options.connectMs : undefined,
      headers: () => {
        const headers: Record<string, string | number> = {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'content-length': Buffer.byteLength(message.text),
          ...message.headers,
        };
        if (message.revision !== undefined) headers['mcp-protocol-version'] = message.revision;
        if (this.#session !== undefined && !message.sessionless) {
          headers['mcp-session-id'] = this.#session;
          exchange.session = this.#session;
        }
        return headers;
      },
      wanted: () => !exchange.done && !this.#closed,
      started: (request) => {
        exchange.request = request;
        authorization = authorizationOf(request);
      },
      response: (response) => {
        if (response.status < 300 && !message.sessionless) this.#accepted(authorization);
        this.#receive(exchange, response);
        if (message.method === 'notifications/initialized') this.#begun('initialized');
      },
      failed: (failure) => {
        this.#fail(exchange, failure);
        if (message.method === 'notifications/initialized') this.#begun('initialized');
      },
    });
  }

  /** Sends the messages that wait for the opening of the session, whatever the server responds to it. */
  #begun(what: 'initialized' | 'stream'): void {
    if (what === 'stream') this.#streamLate?.cancel();
    if (this.#opening.delete(what) && this.#opening.size === 0) this.#sendTurn();
  }

  #authorizationOf({ message }: HttpExchange): Authorization | undefined {
    return message.authorization ?? this.#options.authorization;
  }

  #receive(exchange: HttpExchange, response: OriginResponse): void {
    const { message } = exchange;
    const { status, type } = response;
    if (exchange.done) return discard(response.body);
    const session = response.headers['mcp-session-id'];
    if (message.method === 'initialize' && typeof session === 'string' && status < 300)
      this.#session = session === '' ? undefined : once(session);
    if (message.id === undefined) return this.#afterMessage(exchange, response);
    if (status < 300 && type === 'text/event-stream') return this.#readStream(exchange, response);
    if (status === 401 || status === 403) return this.#unauthorized(exchange, response);
    this.#readBody(exchange, response);
  }

  /** The response to a notification or an answer means nothing, unless the server rejects the message. */
  #afterMessage({ message }: HttpExchange, response: OriginResponse): void {
    const { status, body } = response;
    if (status < 300) return discard(body);
    readExcerpt(response, this.#options.clock, (text) =>
      this.#lostMessage(message, `the server responded with HTTP ${status}${excerpt(text)}`),
    );
  }

  /** The server waits for an answer; it rarely needs a notification. */
  #lostMessage({ method }: OutgoingMessage, why: string): void {
    if (this.#closed) return;
    const answer = method === 'response';
    this.#options.log(
      answer ? 'warning' : 'info',
      `${this.#options.url.origin}: ${answer ? "the client's answer to a request of the server" : method} was lost: ${why}`,
    );
  }

  /** A body that is not a stream: a JSON-RPC message, or the explanation of a failure. */
  #readBody(exchange: HttpExchange, response: OriginResponse): void {
    const { maxMessageBytes } = this.#options;
    const { status, type, body } = response;
    // A result without a type is read, too.
    const json = isJson(type) || (type === '' && status < 300);
    const limit = json ? maxMessageBytes : EXCERPT_BYTES;
    const chunks: Buffer[] = [];
    let bytes = 0;
    body.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= limit) return void chunks.push(chunk);
      response.destroy();
      // The beginning of an explanation explains enough, and the rest may have no end.
      if (json) this.#fail(exchange, tooLong(maxMessageBytes));
      else finish();
    });
    const finish = (): void => {
      if (exchange.done) return;
      // Removes a byte order mark, as readers of JSON may (RFC 8259 section 8.1).
      const text = (chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks).toString('utf8')).replace(
        /^\uFEFF/,
        '',
      );
      const { id, method, sessionless } = exchange.message;
      const probes = method === 'server/discover';
      const opens = method === 'initialize' || probes;
      if (status < 300) {
        // Only a modern answer shows a modern server (2026-07-28 versioning, "Backward Compatibility").
        if (type === '' && text.trim() === '' && !probes) return this.#fail(exchange, notMcp(status, type, text));
        if (probes && (!json || text.trim() === ''))
          return this.#fail(exchange, { kind: 'unknown era', status, text: excerpt(text) });
        if (!json) return this.#fail(exchange, notMcp(status, type, text));
        this.#end(exchange);
        return this.#report({ type: 'text', text, about: id, whole: true });
      }
      const inSession = exchange.session !== undefined;
      if (inSession && isGone(status)) return this.#fail(exchange, { kind: 'session lost', status });
      // A JSON-RPC error explains the status better than the status does. But it must not hide from a handshake that the
      // server asks to try again later: any error of a probe shows a legacy server.
      const later = opens && (status === 429 || status === 503);
      if (json && hasError(text) && !later) {
        this.#end(exchange);
        return this.#report({ type: 'text', text, about: id, whole: true, status });
      }
      if (inSession && status === 400)
        return this.#fail(exchange, { kind: 'session lost', status, text: excerpt(text) });
      if (sessionless && UNKNOWN_METHOD.includes(status))
        return this.#fail(exchange, { kind: 'unknown era', status, text: excerpt(text) });
      if (probes && status >= 400 && !WITHOUT_SERVER.includes(status))
        return this.#fail(exchange, { kind: 'unknown era', status, text: excerpt(text) });
      this.#fail(exchange, rejectionOf(response, text, inSession, this.#options.clock.date()));
    };
    body.on('end', finish);
    body.on('close', () => {
      if (!exchange.done && !body.readableEnded) this.#fail(exchange, cut('unknown', body.errored));
    });
  }

  /** A token is missing, or the rights of one; or the server says so of a session that it does not know. */
  #unauthorized(exchange: HttpExchange, response: OriginResponse): void {
    const { status } = response;
    const probes = exchange.message.method === 'server/discover';
    readExcerpt(response, this.#options.clock, (text) => {
      const failure = rejectionOf(response, text, exchange.session !== undefined, this.#options.clock.date());
      const challenged = failure.kind === 'unauthorized';
      this.#fail(exchange, probes && !challenged ? { kind: 'unknown era', status, text: excerpt(text) } : failure);
    });
  }

  // Streams

  #readStream(exchange: HttpExchange, response: OriginResponse): void {
    const { id } = exchange.message;
    const reader = this.#reader(
      (text) => {
        exchange.resumes = 0;
        this.#report({ type: 'text', text, about: id });
      },
      exchange,
      // An event with a new id is progress, also without data: the server lets the client poll (SEP-1699).
      () => {
        exchange.resumes = 0;
      },
      {
        onOverflow: () => {
          response.destroy();
          this.#fail(exchange, tooLong(this.#options.maxMessageBytes));
        },
      },
    );
    reader.follow(response.body);
    response.body.on('close', () => {
      if (!exchange.done) this.#streamCut(exchange, cut('unknown', response.body.errored));
    });
  }

  /** The stream ended before the response. A stream with event ids is resumed (2025-11-25 transports, "Resumability and Redelivery"). */
  #streamCut(exchange: HttpExchange, failure: CallFailure): void {
    const { method, sessionless } = exchange.message;
    if (method === 'server/discover') return this.#fail(exchange, { kind: 'unknown era', status: 200 });
    if (exchange.lastEventId === '' || sessionless || exchange.resumes >= MAX_RESUMES)
      return this.#fail(exchange, failure);
    exchange.resumes += 1;
    exchange.retry = this.#options.clock.after(exchange.retryMs, () => this.#resume(exchange));
  }

  #resume(exchange: HttpExchange): void {
    if (exchange.done || this.#closed) return;
    this.#get({
      lastEventId: exchange.lastEventId,
      authorization: this.#authorizationOf(exchange),
      waitsForToken: exchange.message.authorization === undefined,
      ofSession: exchange.message.authorization === undefined,
      wanted: () => !exchange.done,
      started: (request) => {
        exchange.request = request;
      },
      response: (response) => {
        if (exchange.done) return discard(response.body);
        if (response.status === 200 && response.type === 'text/event-stream')
          return this.#readStream(exchange, response);
        readExcerpt(response, this.#options.clock, (text) => {
          const { status } = response;
          const failure: CallFailure = {
            ...cut('unknown'),
            message: `the response was cut, and the server rejects its continuation with HTTP ${status}${excerpt(text)}`,
          };
          if (status >= 500 || status === 429) this.#streamCut(exchange, failure);
          else this.#fail(exchange, failure);
        });
      },
      failed: (failure) => this.#streamCut(exchange, { ...failure, carriedOut: 'unknown' }),
    });
  }

  #openStream(stream: SessionStream): void {
    if (this.#closed || this.#stream !== stream) return;
    stream.rejected = undefined;
    let authorization: string | undefined;
    let started = false;
    const again = (): void => {
      if (this.#stream !== stream || stream.retry) return;
      stream.failures += 1;
      const wait = delayAfter({ fromMs: stream.retryMs, toMs: LONGEST_BACK_OFF_MS }, stream.failures);
      stream.retry = this.#options.clock.after(Math.max(stream.retryMs, wait), () => {
        stream.retry = undefined;
        this.#openStream(stream);
      });
    };
    this.#get({
      lastEventId: stream.lastEventId,
      authorization: this.#options.authorization,
      wanted: () => this.#stream === stream,
      started: (request) => {
        stream.request = request;
        started = true;
        authorization = authorizationOf(request);
      },
      response: (response) => {
        this.#begun('stream');
        const { status, type } = response;
        if (status !== 200 || type !== 'text/event-stream') {
          discard(response.body);
          if (status >= 500 || status === 429) return again();
          // The next token opens the stream. An idle stream is no reason to ask a person to sign in.
          if (status === 401) stream.rejected = authorization ?? '';
          // 405: the server offers no such stream. 404: the session has ended, which the next request reports.
          return this.#withoutStream(
            stream,
            `the server responded with HTTP ${status} and ${type || 'no content type'}`,
          );
        }
        if (stream.failures > 0 && stream.lastEventId === '') this.#report({ type: 'gap' });
        stream.opened = true;
        const began = this.#options.clock.now();
        const advanced = (): void => {
          stream.failures = 0;
        };
        const reader = this.#reader(
          (text) => {
            advanced();
            this.#report({ type: 'text', text, about: undefined });
          },
          stream,
          advanced,
          { onSkipped: (envelope, bytes) => this.#report({ type: 'dropped', envelope, bytes }) },
        );
        reader.follow(response.body);
        response.body.on('close', () => {
          // A server that closes the stream at once, each time, is asked more and more rarely.
          if (this.#options.clock.now() - began >= STEADY_MS) advanced();
          again();
        });
      },
      failed: ({ reason, message }) => {
        this.#begun('stream');
        if (started && reason !== 'refused' && reason !== 'malformed') return again();
        // A sign-in that fails is reported by the next request of the session.
        stream.rejected = authorization ?? '';
        this.#withoutStream(stream, message);
      },
    });
  }

  /** The server announces no changes any more: what the client has of it may be old. */
  #withoutStream(stream: SessionStream, why: string): void {
    if (!stream.opened) return;
    stream.opened = false;
    this.#options.log('info', `${this.#options.url.origin}: the stream of the session does not open again: ${why}`);
    this.#report({ type: 'gap' });
  }

  /** The server accepts an authorization: the stream of the session opens again if it was rejected with another one. */
  #accepted(authorization: string | undefined): void {
    const stream = this.#stream;
    if (stream?.rejected !== undefined && stream.rejected !== (authorization ?? '')) this.#openStream(stream);
  }

  authorized(): void {
    if (this.#stream?.rejected !== undefined) this.#openStream(this.#stream);
    this.#origin.authorized();
  }

  #closeStream(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.retry?.cancel();
    stream?.request?.destroy();
    this.#begun('stream');
  }

  #get({ lastEventId, ...request }: StreamRequest): void {
    const { wanted } = request;
    this.#origin.send({
      ofSession: true,
      ...request,
      method: 'GET',
      wanted: () => !this.#closed && wanted(),
      headers: () => ({
        accept: 'text/event-stream',
        ...this.#sessionHeaders(),
        ...(lastEventId === '' ? {} : { 'last-event-id': lastEventId }),
      }),
    });
  }

  async #deleteSession(): Promise<void> {
    const { clock, authorization } = this.#options;
    await new Promise<void>((resolve) => {
      let request: ClientRequest | undefined;
      let waits = true;
      const end = (): void => {
        waits = false;
        late.cancel();
        resolve();
      };
      const late = clock.after(DELETE_MS, () => {
        request?.destroy();
        end();
      });
      this.#origin.send({
        method: 'DELETE',
        ofSession: true,
        authorization,
        headers: () => this.#sessionHeaders(),
        wanted: () => waits,
        started: (sent) => {
          request = sent;
        },
        response: ({ body }) => {
          discard(body);
          body.on('close', end);
        },
        // Without a token there is nothing to say to the server; it ends the session by itself.
        failed: end,
      });
    });
  }

  #sessionHeaders(): Record<string, string> {
    return {
      ...(this.#session === undefined ? {} : { 'mcp-session-id': this.#session }),
      ...(this.#revision === undefined ? {} : { 'mcp-protocol-version': this.#revision }),
    };
  }

  /** Reads events into texts; remembers ids and delays. */
  #reader(
    deliver: (text: string) => void,
    at: ResumableStream,
    advanced: () => void,
    tooLong: Pick<EventReaderOptions, 'onOverflow' | 'onSkipped'>,
  ): EventReader {
    return new EventReader({
      maxBytes: this.#options.maxMessageBytes,
      onId: (id) => {
        const position = this.#resumable(id, at);
        if (position !== at.lastEventId) advanced();
        at.lastEventId = position;
      },
      onEvent: (type, data) => {
        if (type === 'message') deliver(data);
      },
      onRetry: (ms) => {
        at.retryMs = Math.min(LONGEST_TIMER_MS, Math.max(SHORTEST_RETRY_MS, ms));
      },
      ...tooLong,
    });
  }

  /** The id of an event as a header: its bytes in UTF-8 (WHATWG HTML, "Last-Event-ID"). Empty if no header can carry it. */
  #resumable(id: string, at: ResumableStream): string {
    const bytes = Buffer.from(id, 'utf8').toString('latin1');
    if (bytes.length <= MAX_EVENT_ID_BYTES && isHeaderValue(bytes)) return bytes;
    if (!at.unresumable)
      this.#options.log(
        'warning',
        `${this.#options.url.origin}: the id of an event has a control character, or more than ${MAX_EVENT_ID_BYTES} bytes: its stream cannot be resumed`,
      );
    at.unresumable = true;
    return '';
  }

  // Ends

  #end(exchange: HttpExchange): void {
    exchange.done = true;
    exchange.retry?.cancel();
    const { id } = exchange.message;
    if (id !== undefined) this.#exchanges.delete(exchange);
  }

  /** The response of a request has arrived: the rest of its stream is not needed. */
  answered(id: RequestId): void {
    const exchange = this.#exchanges.get(id);
    if (exchange) this.#end(exchange);
  }

  #fail(exchange: HttpExchange, failure: ChannelFailure): void {
    if (exchange.done) return;
    this.#end(exchange);
    const { id } = exchange.message;
    if (id !== undefined) return this.#report({ type: 'request failed', id, failure });
    if (failure.kind === undefined) this.#lostMessage(exchange.message, failure.message);
  }

  #report(mail: ChannelMail): void {
    if (!this.#closed) this.#host?.send(mail);
  }
}

function newExchange(message: OutgoingMessage): HttpExchange {
  return {
    message,
    request: undefined,
    retry: undefined,
    lastEventId: '',
    unresumable: false,
    retryMs: DEFAULT_RETRY_MS,
    resumes: 0,
    done: false,
    session: undefined,
  };
}

/** Statuses of a server that does not know what the request is, or where. */
const UNKNOWN_METHOD: readonly number[] = [400, 404, 405, 406, 415, 422, 501];

/** Statuses of a gateway that did not reach the server, or of a server that asks to try again later. They show no era. */
const WITHOUT_SERVER: readonly number[] = [408, 425, 429, 502, 503, 504];

/** A request for a stream. */
interface StreamRequest extends Omit<OriginRequest, 'method' | 'headers'> {
  readonly lastEventId: string;
}

/** The authorization that a request carries. */
function authorizationOf(request: ClientRequest): string | undefined {
  const header = request.getHeader('authorization');
  return header === undefined ? undefined : String(header);
}

/**
 * `application/json`, or a type that is written in JSON (RFC 6839 section 3.1). Some servers name an older type. A body that is no JSON
 * fails its call in words.
 */
function isJson(type: string): boolean {
  return type.endsWith('+json') || ['application/json', 'application/json-rpc', 'text/json'].includes(type);
}

/** The value of a header that a proxy has repeated: Node joins its values, and no id of a session has a space. */
function once(value: string): string {
  const [first = '', ...others] = value.split(', ');
  return others.every((each) => each === first) ? first : value;
}

/** Guesses that a body is a JSON-RPC message: the connection parses it, and a body of another kind is an excerpt for a person. */
function hasError(text: string): boolean {
  return text.includes('"jsonrpc"') && text.includes('"error"');
}
