/**
 * A `node:http` request and its response, as the endpoint sees them. One object for both, because one is created for
 * every request.
 */
import { AsyncResource } from 'node:async_hooks';
import { Buffer, isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Auth } from '../messages/auth.ts';
import type { Bytes } from '../messages/connection-events.ts';
import { type CompleteRequest, LARGE_LENGTH, serveAtEndOfTurn } from '../transports/turn-batch.ts';
import {
  type Body,
  type BodyLimits,
  type Headers,
  type HttpListener,
  type HttpRequest,
  type HttpResponse,
  MAX_START,
} from './http-message.ts';
import type { LingeringClose } from './lingering.ts';
import { lengthFault, ReceivedBytes, SMALL_BODY } from './received-bytes.ts';

interface NodeOptions {
  /** Ends the connection if the request is rejected before its body was read. */
  readonly lingering: LingeringClose;
  /** The request of a mounted server: its path and query, from which a framework may have removed a part. */
  readonly mounted?: { readonly url: string | undefined };
  /** The request has `Expect: 100-continue`, and no response to that was sent yet. */
  readonly expects?: boolean;
}

/**
 * An async resource, so that handlers run in the async context in which the request arrived. Embedders trace their
 * requests by it.
 */
export class NodeRequest extends AsyncResource implements HttpRequest, HttpResponse, CompleteRequest {
  listener: HttpListener | undefined;
  auth: Auth | undefined;
  gone = false;
  /** Its body is large, or it must wait for a large request of its socket. */
  large = false;
  readonly method: string;
  readonly url: string;
  readonly version: string;
  readonly response: HttpResponse = this;
  readonly #mounted: boolean;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #lingering: LingeringClose;
  /** The client sends its body only after a 100 Continue. */
  #expects: boolean;
  /** The callback that waits for the body. */
  #done: ((body: Body) => void) | undefined;
  /** Text that was written in this turn and not yet passed to the response. */
  #unwritten = '';
  /** The body is chunked and only this object writes it, so a chunk may go directly to the socket. */
  #plain = false;
  /** The socket's buffer is full for now. */
  #full = false;
  /** The body is wanted as bytes. */
  #raw = false;
  /** The received part of the body: nearly always one chunk. */
  #chunks: Buffer | Buffer[] | undefined;
  /** The received part in the byte quota, if it is large. */
  #received: ReceivedBytes | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    { lingering, mounted, expects = false }: NodeOptions,
  ) {
    super('TROUPE_HTTP_REQUEST');
    this.method = request.method ?? 'GET';
    this.url = mounted?.url ?? request.url ?? '/';
    this.version = request.httpVersion;
    this.#mounted = mounted !== undefined;
    this.#lingering = lingering;
    this.#expects = expects;
    this.#request = request;
    this.#response = response;
    response.on('close', this.#closed);
    // A pipelined request waits for the socket, and Node does not notify it when the socket closes.
    if (!response.socket) wait(request.socket, this.#closed);
  }

  get remoteAddress(): string | undefined {
    return this.#request.socket.remoteAddress;
  }

  get connection(): object {
    return this.#request.socket;
  }

  get localAddress(): string | undefined {
    return this.#request.socket.localAddress;
  }

  get localPort(): number | undefined {
    return this.#request.socket.localPort;
  }

  /** Searches the raw headers: having Node index all headers for the few that are read would take longer. */
  header(name: string): string | undefined {
    const { rawHeaders } = this.#request;
    let found: string | undefined;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const raw = rawHeaders[at] ?? '';
      if (raw !== name && (raw.length !== name.length || raw.toLowerCase() !== name)) continue;
      const value = rawHeaders[at + 1] ?? '';
      // Several headers of one name equal their joined values (RFC 9110 section 5.3).
      found = found === undefined ? value : `${found}, ${value}`;
    }
    return found;
  }

  values(name: string): readonly string[] {
    const { rawHeaders } = this.#request;
    const found: string[] = [];
    for (let at = 0; at < rawHeaders.length; at += 2)
      if (rawHeaders[at]?.toLowerCase() === name) found.push(rawHeaders[at + 1] ?? '');
    return found;
  }

  pick(takes: (name: string) => boolean): Readonly<Record<string, string>> {
    const { rawHeaders } = this.#request;
    const picked: Record<string, string> = {};
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = (rawHeaders[at] ?? '').toLowerCase();
      if (!takes(name)) continue;
      const [before, value] = [picked[name], rawHeaders[at + 1] ?? ''];
      picked[name] = before === undefined ? value : `${before}, ${value}`;
    }
    return picked;
  }

  repeats(name: string): boolean {
    return this.values(name).length > 1;
  }

  body(limits: BodyLimits, principal: string, done: (body: Body) => void): void {
    const request = this.#request;
    if (request.readableEnded) return done({ fault: 'read already' });
    if (this.gone) return done({ fault: 'cut' });
    const declared = Number(this.header('content-length') ?? 0);
    const refused =
      declared > SMALL_BODY || declared > limits.maxMessageBytes ? lengthFault(declared, principal, limits) : undefined;
    if (refused) return done(refused);
    if (this.#expects) {
      this.#expects = false;
      this.#response.writeContinue();
    }
    let length = 0;
    this.#done = done;
    this.#raw = limits.raw === true;
    request.on('data', (chunk: Buffer) => {
      // A rejected body is read on and discarded.
      if (!this.#done) return;
      length += chunk.length;
      if (length > limits.maxMessageBytes) return this.#finish({ fault: 'too long', start: this.#start(chunk) });
      if (length > SMALL_BODY) {
        this.#received ??= new ReceivedBytes(limits, principal);
        const full = this.#received.grow(length);
        if (full) return this.#finish(full);
      }
      if (!this.#chunks) this.#chunks = chunk;
      else if (Array.isArray(this.#chunks)) this.#chunks.push(chunk);
      else this.#chunks = [this.#chunks, chunk];
    });
    request.on('end', () => {
      if (!this.#done) return;
      const { socket } = request;
      // A client that pipelines its requests may send a small one after a large one.
      if (length > LARGE_LENGTH || (lastLarge.size > 0 && lastLarge.has(socket))) {
        this.large = true;
        lastLarge.set(socket, this);
      }
      serveAtEndOfTurn(this);
    });
  }

  /** The start of the body: the chunks before this one, or else this one. */
  #start(chunk: Buffer): string {
    const [first = chunk] = Array.isArray(this.#chunks) ? this.#chunks : [this.#chunks];
    return first.toString('utf8', 0, MAX_START);
  }

  serve(): void {
    this.runInAsyncScope(this.#serve, this);
  }

  #serve(): void {
    const { socket } = this.#request;
    if (this.large && lastLarge.get(socket) === this) lastLarge.delete(socket);
    const chunks = this.#chunks;
    const bytes = Array.isArray(chunks) ? Buffer.concat(chunks) : (chunks ?? NO_BYTES);
    if (this.#raw) this.#finish({ text: '', bytes });
    else this.#finish(isUtf8(bytes) ? { text: bytes.toString('utf8') } : { fault: 'not UTF-8' });
  }

  #finish(body: Body): void {
    const done = this.#done;
    this.#done = undefined;
    this.#chunks = undefined;
    // From here the message counts as a request.
    this.#received?.release();
    this.#received = undefined;
    done?.(body);
  }

  readonly #closed = (): void => {
    if (this.gone) return;
    this.gone = true;
    waiting.get(this.#request.socket)?.delete(this.#closed);
    this.#finish({ fault: 'cut' });
    this.listener?.closed();
  };

  send(status: number, headers: Headers, body: string | undefined, bytes?: Bytes): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    const list = listOf(headers);
    if (!this.#request.complete && this.#leavesBody(headers)) list.push('connection', 'close');
    const pieces = bytes?.();
    if (status !== 204) list.push('content-length', pieces ? lengthOf(pieces) : Buffer.byteLength(body ?? ''));
    response.writeHead(status, list);
    if (!pieces) return void response.end(body);
    for (const piece of pieces) response.write(piece);
    response.end();
  }

  /**
   * Decides what happens to an unread body. Node discards a short one, and the connection continues; after any other,
   * the connection ends.
   *
   * @returns whether the response must announce that
   */
  #leavesBody(headers: Headers): boolean {
    const request = this.#request;
    // HTTP/2 streams end on their own.
    if (request.httpVersionMajor > 1) return false;
    const chunked = this.header('transfer-encoding') !== undefined;
    const length = Number(this.header('content-length') ?? 0);
    if (!chunked && length === 0 && !this.#expects) return false;
    const ends = headers.connection === 'close';
    // Without an answer, a client that waits for 100 Continue may or may not send its body, so the following bytes
    // would be ambiguous.
    const discards = !chunked && length <= MAX_DISCARDED && !this.#expects;
    if (discards && !ends && this.#response.shouldKeepAlive) return false;
    this.#lingering.arrange(request);
    return !ends;
  }

  /** True if a response is being written on this connection or waits for its turn. Nothing else may be written then. */
  get answering(): boolean {
    const { headersSent, writableFinished, socket } = this.#response;
    return !writableFinished && (headersSent || !socket);
  }

  begin(status: number, headers: Headers): void {
    const response = this.#response;
    response.on('drain', () => this.listener?.drained());
    // A disconnected client is not an error of the server; the 'close' event reports it.
    response.on('error', ignore);
    response.writeHead(status, listOf(headers));
    response.flushHeaders();
    // Middleware of a mounted server may wrap a response, for example to compress it.
    this.#plain = response.chunkedEncoding && !this.#mounted;
  }

  /** Joins the text of one turn into one chunk: a chunk costs as much as its content. */
  write(text: string): boolean {
    const response = this.#response;
    if (response.destroyed) return true;
    const first = this.#unwritten === '';
    this.#unwritten += text;
    if (this.#unwritten.length >= MOST_UNWRITTEN) this.#flush();
    else if (first) this.#writeLater();
    return !(this.#full || response.writableNeedDrain);
  }

  #writeLater(): void {
    if (unwritten.length === 0) process.nextTick(flushAll);
    unwritten.push(this.#flush);
    if (unwritten.length >= MOST_RESPONSES) flushAll();
  }

  readonly #flush = (): void => {
    const text = this.#unwritten;
    this.#unwritten = '';
    const response = this.#response;
    // After its end, the connection belongs to the next response.
    if (text === '' || response.destroyed || response.writableEnded) return;
    const { socket } = response;
    // Data in Node's own buffer must leave first.
    if (!this.#plain || !socket || socket.writableLength !== response.writableLength) return void response.write(text);
    const length = Buffer.byteLength(text);
    if (socket.write(chunkOf(text, length), length === text.length ? 'latin1' : 'utf8') || this.#full) return;
    this.#full = true;
    socket.once('drain', this.#drained);
  };

  readonly #drained = (): void => {
    this.#full = false;
    this.listener?.drained();
  };

  get pending(): number {
    return this.#response.writableLength + this.#unwritten.length;
  }

  end(): void {
    this.#flush();
    this.#response.end();
  }

  destroy(): void {
    this.#response.destroy();
  }
}

/** Maximum length of a body that is read and discarded, in bytes, so that its connection can be reused. */
const MAX_DISCARDED = 65_536;

/** Maximum number of characters that wait for the end of a turn. */
const MOST_UNWRITTEN = 16_384;

/**
 * Maximum number of responses that wait for the end of a turn, so that writing to thousands of responses spreads over
 * the turn.
 */
const MOST_RESPONSES = 16;

/** The responses with text that was written in this turn. */
let unwritten: (() => void)[] = [];

function flushAll(): void {
  const flushes = unwritten;
  unwritten = [];
  for (const flush of flushes) flush();
}

/** Builds a chunk in one piece: Node would write four, in a system call that takes twice as long to prepare. */
function chunkOf(text: string, length: number): string {
  return `${length.toString(16)}\r\n${text}\r\n`;
}

const NO_BYTES = Buffer.alloc(0);

/** The last request of each socket that waits for a turn of its own. Later requests of that socket wait behind it. */
const lastLarge = new Map<Socket, NodeRequest>();

function lengthOf(pieces: readonly Uint8Array[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return length;
}

/** The headers as a list, which Node writes unchanged. */
function listOf(headers: Headers): (string | number)[] {
  const list: (string | number)[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (typeof value === 'string') list.push(name, value);
    else for (const each of value ?? []) list.push(name, each);
  }
  return list;
}

function ignore(): void {}

/** The close callbacks of each socket: one listener for all of them. */
const waiting = new WeakMap<Socket, Set<() => void>>();

function wait(socket: Socket, closed: () => void): void {
  let all = waiting.get(socket);
  if (!all) {
    all = new Set();
    waiting.set(socket, all);
    socket.once('close', () => {
      for (const each of [...(waiting.get(socket) ?? [])]) each();
    });
  }
  all.add(closed);
}
