/** An exchange that another node has forwarded, with its response, as the endpoint of its owner serves it. */
import type { ServerHttp2Stream } from 'node:http2';
import { type Auth, authOf } from '../../messages/auth.ts';
import type { Bytes } from '../../messages/connection-events.ts';
import type { Hop } from '../../messages/hop-records.ts';
import type { Body, BodyLimits, Headers, HttpListener, HttpResponse } from '../http/http-message.ts';
import { MAX_START } from '../http/http-message.ts';
import { LARGE_LENGTH, serveAlone } from '../turn-batch.ts';
import type { LinkSignature } from './link-handshake.ts';
import type { ForwardedExchange, LinkedExchange } from './link-port.ts';

/** The header of a signature, and that of an exchange whose cell the node does not own. */
export const SIGNATURE = 'link-signature';
export const NOT_MINE = 'link-not-mine';
/** The header of a response that is one body: its length in bytes. (A 204 may have no Content-Length.) */
export const WHOLE = 'link-length';
/** The end of a stream that its owner has ended. HTTP/2 reports a connection that closed as an end, too. No event contains it. */
export const STREAM_END = '\0';
/** Misdirected Request (RFC 9110 section 15.5.20). */
const MISDIRECTED = 421;
/** Headers about one connection, which belong to the node that owns it (RFC 9110 section 7.6.1). */
const OF_CONNECTION: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade']);

/** The text of a status and headers that is signed. */
export function headText(status: number, headers: Readonly<Record<string, unknown>>): string {
  const lines = Object.keys(headers)
    .filter((name) => !name.startsWith(':') && name !== SIGNATURE && name !== 'date')
    .sort()
    .map((name) => `${name}: ${valueText(headers[name])}\n`);
  return `${status}\n${lines.join('')}\n`;
}

/** Node joins the values of a header that has several. */
function valueText(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : String(value);
}

export interface ArrivedExchange {
  readonly from: string;
  readonly exchange: ForwardedExchange;
  readonly stream: ServerHttp2Stream;
  /** Signs the response; undefined over TLS. */
  readonly signature: LinkSignature | undefined;
  readonly number: number;
}

export class LinkedRequest implements LinkedExchange, HttpResponse {
  listener: HttpListener | undefined;
  auth: Auth | undefined;
  gone = false;
  readonly from: string;
  readonly method: string;
  readonly url: string;
  readonly endpoint: number;
  readonly cell: number;
  readonly deadlineMs: number;
  readonly remoteAddress: string | undefined;
  readonly connection = undefined;
  readonly localAddress = undefined;
  readonly localPort = undefined;
  readonly version = '1.1';
  readonly #arrived: ArrivedExchange;

  constructor(arrived: ArrivedExchange) {
    const { from, exchange, stream } = arrived;
    const { method, url, endpoint, cell, deadlineMs, remoteAddress, auth } = exchange;
    this.#arrived = arrived;
    this.from = from;
    this.method = method;
    this.url = url;
    this.endpoint = endpoint;
    this.cell = cell;
    this.deadlineMs = deadlineMs;
    this.remoteAddress = remoteAddress;
    this.auth = auth && Object.freeze({ ...authOf(auth.principal, auth.scopes), ...auth });
    stream.on('close', () => {
      if (this.gone) return;
      this.gone = true;
      this.listener?.closed();
    });
    stream.on('drain', () => this.listener?.drained());
  }

  /** HTTP/2 numbers the exchange (RFC 9113 section 5.1.1). */
  get hop(): Hop {
    return { node: this.from, number: this.#arrived.stream.id ?? 0 };
  }

  get response(): HttpResponse {
    return this;
  }

  header(name: string): string | undefined {
    return this.#arrived.exchange.headers[name];
  }

  values(name: string): readonly string[] {
    const value = this.header(name);
    return value === undefined ? [] : [value];
  }

  names(): readonly string[] {
    return Object.keys(this.#arrived.exchange.headers);
  }

  /** The entry has rejected a request whose Host header repeats, and forwards every other header once. */
  repeats(): boolean {
    return false;
  }

  body({ maxMessageBytes }: BodyLimits, _principal: string, done: (body: Body) => void): void {
    const { text } = this.#arrived.exchange;
    // The nodes of a cluster may have different limits while one is deployed after the other.
    if (Buffer.byteLength(text) > maxMessageBytes) done({ fault: 'too long', start: text.slice(0, MAX_START) });
    else if (text.length > LARGE_LENGTH) serveAlone({ serve: () => done({ text }) });
    else done({ text });
  }

  send(status: number, headers: Headers, body: string | undefined, bytes?: Bytes): void {
    const { stream } = this.#arrived;
    if (stream.headersSent || stream.destroyed) return;
    const content = bytes ? Buffer.concat(bytes()) : Buffer.from(body ?? '');
    this.#head(status, { ...headers, [WHOLE]: String(content.length) }, content);
    if (content.length > 0) stream.end(content);
  }

  begin(status: number, headers: Headers): void {
    if (!this.#arrived.stream.destroyed) this.#head(status, headers);
  }

  #head(status: number, given: Headers, content?: Uint8Array): void {
    const { signature, number, stream } = this.#arrived;
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(given))
      if (!OF_CONNECTION.has(name)) headers[name.toLowerCase()] = typeof value === 'string' ? value : [...value];
    if (signature) headers[SIGNATURE] = signature.sign(number, headText(status, headers), content ?? '');
    stream.respond({ ':status': status, ...headers }, { endStream: content?.length === 0 });
  }

  write(text: string): boolean {
    const { stream } = this.#arrived;
    if (stream.destroyed) return true;
    return stream.write(text);
  }

  get pending(): number {
    return this.#arrived.stream.writableLength;
  }

  end(): void {
    this.#arrived.stream.end(STREAM_END);
  }

  destroy(): void {
    this.#arrived.stream.close(DESTROYED);
  }

  notMine(): void {
    this.send(MISDIRECTED, { [NOT_MINE]: '1' }, undefined);
  }
}

/** INTERNAL_ERROR (RFC 9113 section 7): the entry disconnects its client. */
const DESTROYED = 2;
