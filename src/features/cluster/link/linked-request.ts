/** An exchange that another node has forwarded, with its response, as the endpoint of its owner serves it. */

import type { Body, BodyLimits, Headers, HttpListener, HttpResponse } from '../../../core/http/http-message.ts';
import { MAX_START } from '../../../core/http/http-message.ts';
import type { LinkedExchange } from '../../../core/http/other-nodes.ts';
import { type Auth, authOf } from '../../../core/messages/auth.ts';
import type { Hop } from '../../../core/messages/hop-records.ts';
import { LARGE_LENGTH, serveAlone } from '../../../core/transports/turn-batch.ts';
import { type LinkChannel, MAX_HEAD_BYTES, RECORD } from './link-channel.ts';
import { CreditedBody } from './link-credit.ts';
import { type ExchangeHead, headText } from './link-text.ts';

/** Headers about one connection, which belong to the node that owns it (RFC 9110 section 7.6.1). */
const OF_CONNECTION: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade']);

/** The link by which an exchange has arrived. */
export interface ArrivedBy {
  /** The node that has forwarded it. */
  readonly from: string;
  readonly channel: LinkChannel;
  /** Everything was sent, or nothing more will be. */
  ended(request: LinkedRequest): void;
}

export class LinkedRequest implements LinkedExchange, HttpResponse {
  listener: HttpListener | undefined;
  auth: Auth | undefined;
  gone = false;
  /** Its body; undefined until it has arrived. */
  text: string | undefined;
  readonly number: number;
  readonly connection = undefined;
  readonly localAddress = undefined;
  readonly localPort = undefined;
  readonly version = '1.1';
  readonly #head: ExchangeHead;
  readonly #by: ArrivedBy;
  #body: CreditedBody | undefined;
  #ended = false;

  constructor(number: number, head: ExchangeHead, by: ArrivedBy) {
    const { auth } = head;
    this.number = number;
    this.#head = head;
    this.#by = by;
    this.auth = auth && Object.freeze({ ...authOf(auth.principal, auth.scopes), ...auth });
  }

  get from(): string {
    return this.#by.from;
  }

  get method(): string {
    return this.#head.method;
  }

  get url(): string {
    return this.#head.url;
  }

  get endpoint(): number {
    return this.#head.endpoint;
  }

  get cell(): number {
    return this.#head.cell;
  }

  get deadlineMs(): number {
    return this.#head.deadlineMs;
  }

  get remoteAddress(): string | undefined {
    return this.#head.remoteAddress;
  }

  get hop(): Hop {
    return { node: this.#by.from, number: this.number };
  }

  get response(): HttpResponse {
    return this;
  }

  header(name: string): string | undefined {
    return this.#head.headers[name];
  }

  values(name: string): readonly string[] {
    const value = this.header(name);
    return value === undefined ? [] : [value];
  }

  pick(takes: (name: string) => boolean): Readonly<Record<string, string>> {
    return Object.fromEntries(Object.entries(this.#head.headers).filter(([name]) => takes(name)));
  }

  /** The entry has rejected a request whose Host header repeats, and forwards every other header once. */
  repeats(): boolean {
    return false;
  }

  body({ maxMessageBytes }: BodyLimits, _principal: string, done: (body: Body) => void): void {
    const { text = '' } = this;
    this.text = '';
    // The nodes of a cluster may have different limits while one is deployed after the other.
    if (isLonger(text, maxMessageBytes)) done({ fault: 'too long', start: text.slice(0, MAX_START) });
    else if (text.length > LARGE_LENGTH) serveAlone({ serve: () => done({ text }) });
    else done({ text });
  }

  send(status: number, headers: Headers, body: string | undefined): void {
    if (this.#body || this.#ended) return;
    const isEmpty = body === undefined || body === '';
    if (!this.#begin(RECORD.whole, status, headers, isEmpty)) return;
    if (isEmpty) return this.#end();
    this.#body = new CreditedBody(this.#by.channel, this.number);
    this.#write(this.#body, body, true);
  }

  begin(status: number, headers: Headers): void {
    if (this.#body || this.#ended || !this.#begin(RECORD.begun, status, headers, false)) return;
    this.#body = new CreditedBody(this.#by.channel, this.number);
  }

  #begin(kind: number, status: number, given: Headers, last: boolean): boolean {
    const text = headText({ status, headers: forwarded(given) });
    const fits = !isLonger(text, MAX_HEAD_BYTES);
    if (fits) this.#by.channel.add(kind, this.number, text, last);
    else this.destroy();
    return fits;
  }

  write(text: string): boolean {
    if (!this.#body || this.#ended) return true;
    this.#write(this.#body, text, false);
    return this.pending === 0;
  }

  #write(body: CreditedBody, text: string, last: boolean): void {
    body.send(text, last);
    if (body.ended) this.#end();
  }

  /** The entry has read so many bytes. */
  renew(bytes: number): void {
    const body = this.#body;
    if (!body || body.unsent === 0) return body?.renew(bytes);
    body.renew(bytes);
    if (body.ended) this.#end();
    else if (body.unsent === 0) this.listener?.drained();
  }

  get pending(): number {
    return this.#body?.unsent ?? 0;
  }

  end(): void {
    if (this.#body && !this.#ended) this.#write(this.#body, '', true);
  }

  destroy(): void {
    this.#reset('lost');
  }

  notMine(): void {
    this.#reset('not mine');
  }

  #reset(reason: string): void {
    if (this.#ended) return;
    this.#by.channel.add(RECORD.reset, this.number, reason);
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#by.ended(this);
  }

  /** Nothing more can be sent: the response has ended, its client has disconnected, or the link is closed. */
  close(): void {
    this.#ended = true;
    if (this.gone) return;
    this.gone = true;
    this.listener?.closed();
  }
}

/** True if a text is longer than this number of bytes. */
function isLonger(text: string, bytes: number): boolean {
  return 3 * text.length > bytes && Buffer.byteLength(text) > bytes;
}

/** The headers for the client, by name in lower case. */
function forwarded(headers: Headers): Headers {
  const found: Record<string, string | readonly string[]> = {};
  for (const name in headers) {
    const value = headers[name];
    const key = name.toLowerCase();
    if (value !== undefined && !OF_CONNECTION.has(key)) found[key] = value;
  }
  return found;
}
