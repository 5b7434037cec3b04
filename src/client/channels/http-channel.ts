/** The HTTP channel of a client: one POST for each message, streams for responses, and the resumption of cut streams. */
import { Buffer } from 'node:buffer';
import type { Agent, AgentOptions, ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import type { Clock, Timer } from '../../clock.ts';
import { InFlightTable } from '../../in-flight-table.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import type { Authorization } from '../authorization.ts';
import type { CallFailure, CarriedOut } from '../client-errors.ts';
import type { Channel, ChannelFailure, ChannelHost, OutgoingMessage } from './channel.ts';

/** `node:http` or `node:https`, as far as a channel uses it. */
export interface NodeHttp {
  readonly Agent: new (options: AgentOptions) => Agent;
  request(options: RequestOptions): ClientRequest;
}

/** The module for the addresses of one origin. Only the one that is needed is loaded. */
export function nodeHttpFor({ protocol }: URL): Promise<NodeHttp> {
  return protocol === 'https:' ? import('node:https') : import('node:http');
}

export interface HttpChannelOptions {
  readonly url: URL;
  /** The module for the origin of `url`, to which every address of the channel belongs. */
  readonly nodeHttp: NodeHttp;
  /** Sent with every request to the origin of `url`, and to no other. */
  readonly headers: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Longest message, in bytes. */
  readonly maxMessageBytes: number;
  /** Most milliseconds until the response begins, for requests that are no calls (the session's stream, its end). */
  readonly connectMs: number;
  readonly authorization: Authorization | undefined;
  /** A session that another process has opened. It is not ended with this channel. */
  readonly resumed?: { readonly session: string; readonly revision: string } | undefined;
}

/** Same-origin redirects that are followed, each with the method and body unchanged (307, 308). */
const MAX_REDIRECTS = 3;
/** Attempts to resume a cut stream, with no event in between. */
const MAX_RESUMES = 5;
const DEFAULT_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
/** Bytes of a response that is no message, read for the error message. */
const EXCERPT_BYTES = 2_048;
/** Longest body without meaning that is read to its end. */
const DISCARDED_BYTES = 65_536;
/** Milliseconds for the end of a session to reach the server. */
const DELETE_MS = 2_000;

/** Errors before anything was sent. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'EPROTO',
]);

/** One request of the client and its response: its stream may be cut and resumed. */
interface HttpExchange {
  readonly message: OutgoingMessage;
  request: ClientRequest | undefined;
  /** The timer before a cut stream is resumed. */
  retry: Timer | undefined;
  /** The id of the last event, with which a stream is resumed. */
  lastEventId: string;
  retryMs: number;
  /** Consecutive attempts to resume without an event. */
  resumes: number;
  /** The response has arrived, or the request was given up. */
  done: boolean;
  /** The response began, so the server received the request. */
  began: boolean;
  /** The session of the request; undefined for a request of none. */
  session: string | undefined;
}

/** The stream of a legacy session for messages outside of any request. */
interface SessionStream {
  request: ClientRequest | undefined;
  retry: Timer | undefined;
  lastEventId: string;
  retryMs: number;
  failures: number;
}

export class HttpChannel implements Channel {
  readonly kind = 'http';
  readonly #options: HttpChannelOptions;
  readonly #agent: Agent;
  readonly #exchanges = new InFlightTable<HttpExchange>(({ message }) => message.id ?? '');
  #url: URL;
  #host: ChannelHost | undefined;
  #session: string | undefined;
  #revision: string | undefined;
  #stream: SessionStream | undefined;
  #closed = false;
  /** Messages of this turn of the event loop. */
  readonly #unsent: HttpExchange[] = [];

  constructor(options: HttpChannelOptions) {
    this.#options = options;
    this.#url = options.url;
    this.#session = options.resumed?.session;
    this.#revision = options.resumed?.revision;
    // Node's agent closes idle sockets a second before the server's announced keep-alive time, so that few requests
    // meet a socket that the server closes at the same moment.
    this.#agent = new options.nodeHttp.Agent({ keepAlive: true, scheduling: 'lifo', maxFreeSockets: 64 });
  }

  /** HTTP has no connection of its own: the first request finds out whether the server is there. */
  open(host: ChannelHost): void {
    this.#host = host;
    this.#options.clock.soon(() => this.#toHost(() => host.send({ type: 'opened' })));
  }

  send(message: OutgoingMessage): void {
    this.#revision = message.revision ?? this.#revision;
    if (message.method === 'initialize') {
      this.#session = undefined;
      this.#closeStream();
    }
    const exchange = newExchange(message);
    if (message.id !== undefined) this.#exchanges.add(exchange);
    // A single call gains nothing from the wait.
    if (this.#exchanges.size <= 1) return this.#post(exchange, this.#url, 0);
    this.#unsent.push(exchange);
    if (this.#unsent.length === 1) this.#options.clock.soon(this.#sendTurn);
  }

  /**
   * Sends the messages of one turn of the event loop together: the first wakes the server, and the others find it awake.
   * With 32 calls in flight, a call takes 0.72 to 0.83 of the client's processor time (docs/performance.md).
   */
  readonly #sendTurn = (): void => {
    for (const exchange of this.#unsent.splice(0)) if (!exchange.done) this.#post(exchange, this.#url, 0);
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
      retryMs: DEFAULT_RETRY_MS,
      failures: 0,
    };
    this.#openStream(this.#stream);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    // Messages of this turn still leave, such as a cancellation.
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

  #post(exchange: HttpExchange, url: URL, redirects: number): void {
    const authorized = this.#authorizationOf(exchange)?.headers('POST', url, this.#options.url);
    if (authorized instanceof Promise) {
      authorized.then(
        (headers) => {
          if (!exchange.done) this.#transmit(exchange, url, redirects, headers);
        },
        (error: unknown) => this.#fail(exchange, unreachable(error, 'no')),
      );
    } else this.#transmit(exchange, url, redirects, authorized);
  }

  #transmit(
    exchange: HttpExchange,
    url: URL,
    redirects: number,
    authorization: Readonly<Record<string, string>> | undefined,
  ): void {
    if (this.#closed) return;
    const { message } = exchange;
    const headers: Record<string, string | number> = {
      ...this.#options.headers,
      ...authorization,
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
    const request = this.#start('POST', url, headers);
    exchange.request = request;
    request.on('response', (response) => {
      exchange.began = true;
      this.#authorizationOf(exchange)?.observe?.(url, response.headers, response.statusCode, this.#options.url);
      this.#receive(exchange, response, url, redirects);
    });
    request.on('error', (error) =>
      this.#fail(exchange, unreachable(error, carriedOutBy(error, request, exchange.began))),
    );
    request.end(message.text);
    // A notification has no caller whose deadline would end it.
    if (message.id !== undefined) return;
    const late = this.#options.clock.after(this.#options.connectMs, () => request.destroy());
    request.on('close', () => late.cancel());
  }

  #authorizationOf({ message }: HttpExchange): Authorization | undefined {
    return message.authorization ?? this.#options.authorization;
  }

  #start(method: string, url: URL, headers: Record<string, string | number>): ClientRequest {
    return this.#options.nodeHttp.request({
      ...addressOf(url),
      method,
      headers,
      agent: this.#agent,
    });
  }

  #receive(exchange: HttpExchange, response: IncomingMessage, url: URL, redirects: number): void {
    const { message } = exchange;
    const status = response.statusCode ?? 0;
    response.on('error', () => {});
    if (exchange.done) return discard(response);
    if (status >= 300 && status < 400) return this.#redirect(exchange, response, url, redirects);
    const session = response.headers['mcp-session-id'];
    if (message.method === 'initialize' && typeof session === 'string' && status < 300) this.#session = session;
    const type = mediaType(response);
    if (status < 300 && message.id !== undefined && type === 'text/event-stream')
      return this.#readStream(exchange, response);
    if (status < 300 && message.id === undefined) return discard(response);
    if (status === 401 || status === 403) return this.#unauthorized(exchange, response, status);
    this.#readBody(exchange, response, status, type);
  }

  /** A body that is not a stream: a JSON-RPC message, or the explanation of a failure. */
  #readBody(exchange: HttpExchange, response: IncomingMessage, status: number, type: string): void {
    const { maxMessageBytes } = this.#options;
    const json = type === 'application/json';
    const limit = json ? maxMessageBytes : EXCERPT_BYTES;
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= limit) return void chunks.push(chunk);
      response.destroy();
      // The beginning of an explanation explains enough, and the rest may have no end.
      if (json) this.#fail(exchange, tooLong(maxMessageBytes));
      else finish();
    });
    const finish = (): void => {
      if (exchange.done) return;
      const text = chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks).toString('utf8');
      const { id, method, sessionless } = exchange.message;
      const opens = method === 'initialize' || method === 'server/discover';
      if (status < 300) {
        if (id === undefined) return;
        if (!json) return this.#fail(exchange, notMcp(status, type, text));
        this.#end(exchange);
        return this.#toHost((host) => host.send({ type: 'text', text, about: id, whole: true }));
      }
      if (status === 404 && exchange.session !== undefined) return this.#fail(exchange, { kind: 'session lost' });
      // A JSON-RPC error explains the status better than the status does. But it must not hide from a handshake that the
      // server asks to try again later: any error of a probe shows a legacy server.
      const later = opens && (status === 429 || status === 503);
      if (id !== undefined && json && hasError(text) && !later) {
        this.#end(exchange);
        return this.#toHost((host) => host.send({ type: 'text', text, about: id, whole: true, status }));
      }
      if (sessionless && id !== undefined && [400, 404, 405, 406, 415, 422, 501].includes(status))
        return this.#fail(exchange, { kind: 'unknown era', status });
      this.#fail(exchange, rejected(status, response, text, this.#options.clock.date()));
    };
    response.on('end', finish);
    response.on('close', () => {
      if (!exchange.done && !response.complete && exchange.message.id !== undefined)
        this.#fail(exchange, cut('unknown'));
    });
  }

  #unauthorized(exchange: HttpExchange, response: IncomingMessage, status: 401 | 403): void {
    discard(response);
    const challenge = response.headers['www-authenticate'];
    if (status === 401 || challenge?.includes('insufficient_scope'))
      return this.#fail(exchange, { kind: 'unauthorized', status, challenge });
    this.#fail(exchange, {
      reason: 'forbidden',
      message: 'the server rejected the request with HTTP 403. The token, the Origin or the Host is not allowed there',
      carriedOut: 'no',
    });
  }

  #redirect(exchange: HttpExchange, response: IncomingMessage, url: URL, redirects: number): void {
    discard(response);
    const status = response.statusCode ?? 0;
    const location = response.headers.location;
    const target = location === undefined ? undefined : parseUrl(location, url);
    // Headers and tokens belong to one origin, and a redirect that changes POST to GET would lose the message.
    if ((status === 307 || status === 308) && target?.origin === url.origin && redirects < MAX_REDIRECTS) {
      if (status === 308) this.#url = target;
      return this.#post(exchange, target, redirects + 1);
    }
    this.#fail(exchange, {
      reason: 'refused',
      message: `expected a response, got a redirect (HTTP ${status}) to ${location ?? 'no address'}. Redirects are followed only within the same origin, at most ${MAX_REDIRECTS}, with 307 or 308. If you trust that address, connect to it directly`,
      carriedOut: 'no',
    });
  }

  // Streams

  #readStream(exchange: HttpExchange, response: IncomingMessage): void {
    const { id } = exchange.message;
    const reader = this.#reader(
      (text) => {
        exchange.resumes = 0;
        this.#toHost((host) => host.send({ type: 'text', text, about: id }));
      },
      exchange,
      () => {
        response.destroy();
        this.#fail(exchange, tooLong(this.#options.maxMessageBytes));
      },
    );
    response.on('data', reader);
    response.on('close', () => {
      if (!exchange.done) this.#streamCut(exchange);
    });
  }

  /** The stream ended before the response. A stream with event ids is resumed (2025-11-25 transports, "Resumability and Redelivery"). */
  #streamCut(exchange: HttpExchange): void {
    if (exchange.message.id === undefined) return;
    if (exchange.lastEventId === '' || exchange.message.sessionless || exchange.resumes >= MAX_RESUMES)
      return this.#fail(exchange, cut('unknown'));
    exchange.resumes += 1;
    exchange.retry = this.#options.clock.after(exchange.retryMs, () => this.#resume(exchange));
  }

  #resume(exchange: HttpExchange): void {
    if (exchange.done || this.#closed) return;
    void this.#get(exchange.lastEventId, this.#authorizationOf(exchange), (request) => {
      exchange.request = request;
      request.on('response', (response) => {
        response.on('error', () => {});
        if (exchange.done) return discard(response);
        if (response.statusCode === 200 && mediaType(response) === 'text/event-stream')
          return this.#readStream(exchange, response);
        discard(response);
        if (response.statusCode === 404) return this.#fail(exchange, cut('unknown'));
        this.#streamCut(exchange);
      });
      request.on('error', () => this.#streamCut(exchange));
    });
  }

  #openStream(stream: SessionStream): void {
    if (this.#closed || this.#stream !== stream) return;
    void this.#get(stream.lastEventId, this.#options.authorization, (request) => {
      stream.request = request;
      const again = (): void => {
        if (this.#stream !== stream || stream.retry) return;
        stream.failures += 1;
        const delay = Math.min(LONGEST_RETRY_MS, stream.retryMs * 2 ** Math.max(0, stream.failures - 1));
        stream.retry = this.#options.clock.after(delay, () => {
          stream.retry = undefined;
          this.#openStream(stream);
        });
      };
      request.on('response', (response) => {
        response.on('error', () => {});
        if (response.statusCode !== 200 || mediaType(response) !== 'text/event-stream') {
          discard(response);
          // 405: the server offers no such stream. 404: the session has ended, which the next request reports.
          if ((response.statusCode ?? 0) < 500) return;
          return again();
        }
        if (stream.failures > 0 && stream.lastEventId === '') this.#toHost((host) => host.send({ type: 'gap' }));
        stream.failures = 0;
        const reader = this.#reader(
          (text) => this.#toHost((host) => host.send({ type: 'text', text, about: undefined })),
          stream,
          () => response.destroy(),
        );
        response.on('data', reader);
        response.on('close', again);
      });
      request.on('error', again);
    });
  }

  #closeStream(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.retry?.cancel();
    stream?.request?.destroy();
  }

  async #get(
    lastEventId: string,
    signIn: Authorization | undefined,
    started: (request: ClientRequest) => void,
  ): Promise<void> {
    const url = this.#url;
    let authorization: Readonly<Record<string, string>> | undefined;
    try {
      authorization = await signIn?.headers('GET', url, this.#options.url);
    } catch {
      // The next request of the session reports what is wrong with the sign-in.
      return;
    }
    if (this.#closed) return;
    const request = this.#start('GET', url, {
      ...this.#options.headers,
      ...authorization,
      accept: 'text/event-stream',
      ...this.#sessionHeaders(),
      ...(lastEventId === '' ? {} : { 'last-event-id': lastEventId }),
    });
    started(request);
    request.end();
  }

  async #deleteSession(): Promise<void> {
    const url = this.#url;
    const { clock, authorization, headers } = this.#options;
    await new Promise<void>((resolve) => {
      let request: ClientRequest | undefined;
      const end = (): void => {
        late.cancel();
        resolve();
      };
      const late = clock.after(DELETE_MS, () => {
        request?.destroy();
        resolve();
      });
      // Without a token there is nothing to say to the server; it ends the session by itself.
      Promise.resolve(authorization?.headers('DELETE', url, this.#options.url)).then((authorized) => {
        request = this.#start('DELETE', url, { ...headers, ...authorized, ...this.#sessionHeaders() });
        request.on('response', discard);
        request.on('error', () => {});
        request.on('close', end);
        request.end();
      }, end);
    });
  }

  #sessionHeaders(): Record<string, string> {
    return {
      ...(this.#session === undefined ? {} : { 'mcp-session-id': this.#session }),
      ...(this.#revision === undefined ? {} : { 'mcp-protocol-version': this.#revision }),
    };
  }

  /** Reads events into texts; remembers ids and delays. @returns the listener for chunks */
  #reader(
    deliver: (text: string) => void,
    at: { lastEventId: string; retryMs: number },
    overflow: () => void,
  ): (chunk: Buffer) => void {
    let failed = false;
    const decoder = new TextDecoder();
    const parser: EventSourceParser = createParser({
      maxBufferSize: this.#options.maxMessageBytes,
      onEvent: ({ id, event, data }) => {
        // An event without an id keeps the one before (WHATWG HTML, "lastEventId").
        if (id !== undefined) at.lastEventId = id;
        if (data !== '' && (event === undefined || event === 'message')) deliver(data);
      },
      onRetry: (ms) => {
        at.retryMs = Math.min(LONGEST_RETRY_MS, Math.max(0, ms));
      },
      onError: (error) => {
        failed ||= error.type === 'max-buffer-size-exceeded';
      },
    });
    return (chunk) => {
      if (failed) return;
      parser.feed(decoder.decode(chunk, { stream: true }));
      if (failed) overflow();
    };
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
    if (id !== undefined) this.#toHost((host) => host.send({ type: 'request failed', id, failure }));
  }

  #toHost(send: (host: ChannelHost) => void): void {
    if (this.#host && !this.#closed) send(this.#host);
  }
}

function newExchange(message: OutgoingMessage): HttpExchange {
  return {
    message,
    request: undefined,
    retry: undefined,
    lastEventId: '',
    retryMs: DEFAULT_RETRY_MS,
    resumes: 0,
    done: false,
    began: false,
    session: undefined,
  };
}

/** The address of a URL for `node:http`; credentials in it become Basic authorization. */
export function addressOf(url: URL): RequestOptions {
  return {
    protocol: url.protocol,
    hostname: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
    port: url.port,
    path: `${url.pathname}${url.search}`,
    ...(url.username === '' ? {} : { auth: `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}` }),
  };
}

function mediaType(response: IncomingMessage): string {
  return (response.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Guesses that a body is a JSON-RPC message: the connection parses it, and a body of another kind is an excerpt for a person. */
function hasError(text: string): boolean {
  return text.includes('"jsonrpc"') && text.includes('"error"');
}

function parseUrl(location: string, base: URL): URL | undefined {
  return URL.canParse(location, base.href) ? new URL(location, base) : undefined;
}

/** Reads a body that means nothing, so that its socket can be used again, unless it is long. */
function discard(response: IncomingMessage): void {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARDED_BYTES) response.destroy();
  });
}

/** A request that no socket could carry was not sent: no address, no connection, or no agreement on encryption. */
function carriedOutBy(error: Error, request: ClientRequest, began: boolean): CarriedOut {
  if (began) return 'unknown';
  const code = 'code' in error ? String(error.code) : '';
  const syscall = 'syscall' in error ? error.syscall : undefined;
  const { socket } = request;
  const shaking = socket !== null && 'secureConnecting' in socket && socket.secureConnecting === true;
  return NOT_SENT.has(code) || syscall === 'connect' || syscall === 'getaddrinfo' || shaking ? 'no' : 'unknown';
}

function unreachable(error: unknown, carriedOut: CarriedOut): CallFailure {
  const text =
    error instanceof Error ? error.message || ('code' in error ? String(error.code) : error.name) : String(error);
  return carriedOut === 'no'
    ? { reason: 'unreachable', message: `cannot be reached: ${text}`, carriedOut, cause: error }
    : { reason: 'closed', message: `the connection broke before the response: ${text}`, carriedOut, cause: error };
}

function cut(carriedOut: CarriedOut): CallFailure {
  return { reason: 'closed', message: 'the response ended before it was complete', carriedOut };
}

function tooLong(max: number): CallFailure {
  return {
    reason: 'too long',
    message: `expected a message of at most ${max} bytes, got a longer one. The option is maxMessageBytes`,
    carriedOut: 'yes',
  };
}

function notMcp(status: number, type: string, text: string): CallFailure {
  return {
    reason: 'not mcp',
    message: `expected a JSON-RPC message as application/json or text/event-stream, got HTTP ${status} with ${type || 'no content type'}${excerpt(text)}. Check the address`,
    carriedOut: 'unknown',
  };
}

/** @param now milliseconds since 1970 */
function rejected(status: number, response: IncomingMessage, text: string, now: number): CallFailure {
  const retryAfterMs = retryAfter(response.headers['retry-after'], now);
  const wait = retryAfterMs === undefined ? '' : ` It asks to wait ${Math.ceil(retryAfterMs / 1_000)} s.`;
  const message = `the server responded with HTTP ${status}${excerpt(text)}.${wait}`;
  // 429 and 503 say that the request was not processed (RFC 6585 section 4, RFC 9110 section 15.6.4).
  if (status === 429 || status === 503) return { reason: 'overloaded', message, carriedOut: 'no', retryAfterMs };
  if (status >= 500) return { reason: 'unreachable', message, carriedOut: 'unknown', retryAfterMs };
  return { reason: status === 404 || status === 405 ? 'not mcp' : 'refused', message, carriedOut: 'no', retryAfterMs };
}

function excerpt(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line === '' ? '' : `: "${line.length > 160 ? `${line.slice(0, 160)}…` : line}"`;
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110 section 10.2.3). */
function retryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
