/** The link from one other node: receives its exchanges and news. */
import type { Duplex } from 'node:stream';
import { InFlightTable } from '../../../core/requests/in-flight-table.ts';
import { LinkChannel, type LinkRecords, RECORD } from './link-channel.ts';
import { ReadCredit } from './link-credit.ts';
import type { LinkSignature } from './link-handshake.ts';
import type { LinkListener } from './link-port.ts';
import { exchangeHeads, newsIn } from './link-text.ts';
import { type ArrivedBy, LinkedRequest } from './linked-request.ts';
import { MAX_NEWS_BYTES } from './news-queue.ts';

/** Maximum number of bytes of exchanges that are being received on all links. */
const MAX_RECEIVING = 64 * 1024 * 1024;

interface AcceptedLinkOptions {
  /** The node that has proved itself. */
  readonly from: string;
  readonly stream: Duplex;
  readonly sends: LinkSignature | undefined;
  readonly receives: LinkSignature | undefined;
  readonly listener: LinkListener;
  readonly maxMessageBytes: number;
  /** The most exchanges on this link. */
  readonly maxExchanges: number;
  /** The bytes that are being received on all links. */
  readonly receiving: { bytes: number };
  /** Closes the connection. */
  destroy(): void;
}

/** A body that arrives in pieces. */
interface ReceivedBody {
  text: string;
  bytes: number;
  readonly credit: ReadCredit;
}

export class AcceptedLink implements LinkRecords, ArrivedBy {
  readonly from: string;
  readonly channel: LinkChannel;
  readonly #options: AcceptedLinkOptions;
  readonly #heads = exchangeHeads();
  /** The exchanges that are being received or served. */
  readonly #exchanges = new InFlightTable<LinkedRequest>(({ number }) => number);
  /** The bodies that have begun to arrive. */
  readonly #bodies = new Map<number, ReceivedBody>();
  /** The number of the news that are being received. */
  #news: number | undefined;
  /** The exchanges that end with the text of this turn. */
  #ended: LinkedRequest[] = [];
  #lastNumber = 0;
  #leaving = false;
  #left = false;

  constructor(options: AcceptedLinkOptions) {
    const { from, stream, sends, receives } = options;
    this.#options = options;
    this.from = from;
    this.channel = new LinkChannel({ stream, sends, receives, records: this });
  }

  /** Ends the link when all exchanges have ended. */
  leave(): void {
    this.#leaving = true;
    this.#finish();
  }

  #finish(): void {
    if (!this.#leaving || this.#left || this.#exchanges.size > 0) return;
    this.#left = true;
    this.channel.add(RECORD.leaving, this.#lastNumber);
    this.channel.end();
  }

  /** The connection has closed. */
  closed(): void {
    const exchanges = this.#exchanges.all();
    for (const request of exchanges) this.#exchanges.delete(request);
    for (const number of [...this.#bodies.keys()]) this.#forget(number);
    for (const request of exchanges) if (request.text !== undefined) request.close();
    this.flushed();
  }

  record(kind: number, number: number, content: Buffer, last: boolean): void {
    switch (kind) {
      case RECORD.exchange:
        return this.#begin(number, content, last);
      case RECORD.news:
        this.#news = number;
        return;
      case RECORD.body:
        return this.#body(number, content, last);
      case RECORD.credit:
        return this.#exchanges.get(number)?.renew(Number(content.toString()));
      case RECORD.reset: {
        const request = this.#exchanges.get(number);
        if (request) this.#exchanges.delete(request);
        this.#forget(number);
        if (request?.text !== undefined) request.close();
        return this.#finish();
      }
    }
  }

  #begin(number: number, content: Buffer, last: boolean): void {
    // The dialer knows the last one that is served.
    if (this.#left) return;
    if (number <= this.#lastNumber) return this.broken();
    this.#lastNumber = number;
    if (this.#exchanges.size >= this.#options.maxExchanges) return this.#reset(number, 'full');
    const head = this.#heads.read(content.toString());
    if (!head) return this.#reset(number, 'lost');
    const request = new LinkedRequest(number, head, this);
    this.#exchanges.add(request);
    if (last) this.#serve(request, '');
  }

  #body(number: number, content: Buffer, last: boolean): void {
    const request = this.#exchanges.get(number);
    const isNews = number === this.#news;
    // Pieces that were sent before a reset arrived.
    if (!request && !isNews) return;
    if (request?.text !== undefined) return this.broken();
    const text = last ? this.#rest(number, content) : this.#piece(number, content, isNews);
    if (text === undefined) return;
    if (request) return this.#serve(request, text);
    for (const news of newsIn(text)) this.#options.listener.news(this.from, news);
    this.#news = undefined;
    this.channel.add(RECORD.received, number);
  }

  #rest(number: number, content: Buffer): string {
    const before = this.#bodies.get(number)?.text;
    this.#forget(number);
    const text = content.toString();
    return before === undefined ? text : before + text;
  }

  #piece(number: number, content: Buffer, isNews: boolean): undefined {
    const { receiving, maxMessageBytes } = this.#options;
    const body = this.#bodies.get(number) ?? { text: '', bytes: 0, credit: new ReadCredit(this.channel, number) };
    this.#bodies.set(number, body);
    body.bytes += content.length;
    receiving.bytes += content.length;
    const longest = isNews ? MAX_NEWS_BYTES : maxMessageBytes;
    if (body.bytes > longest || receiving.bytes > MAX_RECEIVING) return this.#reset(number, 'full');
    body.text += content.toString();
    body.credit.read(content.length);
  }

  #serve(request: LinkedRequest, text: string): void {
    request.text = text;
    this.#options.listener.exchange(request);
    // A peer that reads nothing sends nothing more.
    if (this.channel.full) this.channel.pause();
  }

  #reset(number: number, reason: string): undefined {
    const request = this.#exchanges.get(number);
    if (request) this.#exchanges.delete(request);
    if (number === this.#news) this.#news = undefined;
    this.#forget(number);
    this.channel.add(RECORD.reset, number, reason);
  }

  #forget(number: number): void {
    this.#options.receiving.bytes -= this.#bodies.get(number)?.bytes ?? 0;
    this.#bodies.delete(number);
  }

  ended(request: LinkedRequest): void {
    this.#exchanges.delete(request);
    this.#ended.push(request);
  }

  flushed(): void {
    const ended = this.#ended;
    this.#ended = [];
    for (const request of ended) request.close();
    this.#finish();
  }

  broken(): void {
    this.#options.destroy();
  }
}
