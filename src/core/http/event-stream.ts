/** One stream of server-sent events: its buffered events, and the response that carries it, if there is one. */
import type { ConnectionEventEmitter, ConnectionId, Reader } from '../messages/connection-events.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { HttpResponse } from './http-message.ts';
import { eventText, idPrefix, KEEP_ALIVE, numberedText, primingText, retryText } from './sse.ts';

/** The properties of a stream that a client can resume. */
export interface Resumable {
  /** Unguessable, because it is part of every event id. */
  readonly id: string;
  /** Maximum number of buffered events, and of their characters. */
  readonly maxEvents: number;
  readonly maxLength: number;
  readonly room: ReplayRoom;
  /** True if the stream begins with an event that has an id and no data. */
  readonly primes: boolean;
  /** Milliseconds after which a client that lost the stream should reconnect. */
  readonly retryMs: number;
}

/** The share of the server's byte quota that the streams of a session may use. */
export interface ReplayRoom {
  /** Counts more bytes. @returns false if they exceed the quota; they count anyway */
  grow(bytes: number): boolean;
  shrink(bytes: number): void;
}

/** The state of a stream that continues after a restart. */
interface Before {
  /** Number of its last event. */
  readonly seq: number;
  /** Number of the last event that is known to have been written to a response. */
  readonly written: number;
  /** The texts of the last events; the last of them has the number `seq`. */
  readonly texts: readonly string[];
}

export const EVENT_STREAM = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  // 2026-07-28 streamable-http "Receiving Messages": proxies must not hold events back.
  'x-accel-buffering': 'no',
} as const;

/** Reports that a reader of this connection is slow, or that it has caught up. */
export function reportPace(bus: ConnectionEventEmitter, connection: ConnectionId, reader: Reader, slow: boolean): void {
  bus.emit(slow ? 'connection.slow' : 'connection.drained', { connection, reader });
}

export class EventStream {
  /** The last event was written, or is buffered for a client that reconnects. */
  finished = false;
  /** The last event was written to a response, so the client has everything, as far as is known. */
  delivered = false;
  /** Time at which the last reader left, in milliseconds of the server's clock; undefined while there is a reader. */
  unreadSince: number | undefined;
  readonly #resumable: Resumable | undefined;
  /** Reports that the reader is slow, or that it has caught up. Undefined once it is finished: it would keep the whole request in memory. */
  #pace: ((slow: boolean) => void) | undefined;
  #response: HttpResponse | undefined;
  #slow = false;
  #abandoned = false;
  /** Number of the last event; the first has 1. */
  #seq = 0;
  /** Number of the last event that was written to a response. */
  #written = 0;
  /** The texts of the last events. They have consecutive numbers, up to `#seq`. */
  readonly #texts: string[] = [];
  #length = 0;
  /** Prefix of the event ids, if events have ids. */
  readonly #prefix: string;

  constructor(resumable: Resumable | undefined, pace: (slow: boolean) => void, before?: Before) {
    this.#resumable = resumable;
    this.#prefix = resumable ? idPrefix(resumable.id) : '';
    this.#pace = pace;
    if (!before) return;
    this.#seq = before.seq;
    this.#written = before.written;
    let fits = true;
    for (const text of before.texts) fits = this.#store(text) && fits;
    if (fits) this.#trim();
    else this.#forget();
  }

  /** Number of the first buffered event, or of the next event. */
  get oldest(): number {
    return this.#seq + 1 - this.#texts.length;
  }

  /** True if a response reads the stream. */
  get read(): boolean {
    return this.#response !== undefined;
  }

  get id(): string | undefined {
    return this.#resumable?.id;
  }

  /** No more events will follow unless a client reconnects: the stream is finished, or its buffer is full. */
  get idle(): boolean {
    return this.finished || (!this.#response && this.#full);
  }

  /** Number of characters in the buffered events. */
  get length(): number {
    return this.#length;
  }

  /** Starts writing to a response whose head was sent: first the events that were never written, then new ones. */
  attach(response: HttpResponse, retryMs = this.#resumable?.retryMs): void {
    this.#response = response;
    this.unreadSince = undefined;
    const { primes = false } = this.#resumable ?? {};
    if (primes) response.write(primingText(this.#eventId(this.#written), retryMs));
    this.#writeFrom(this.#written);
  }

  /**
   * Starts writing to a response whose head was sent, from the event after `seq`. Ends the previous response.
   *
   * @returns false if the events after `seq` are no longer buffered, or `seq` was never an event
   */
  resume(response: HttpResponse, seq: number): boolean {
    if (!this.canResume(seq)) return false;
    this.#response?.end();
    this.#response = response;
    this.unreadSince = undefined;
    this.#writeFrom(seq);
    return true;
  }

  /** True if the stream is finished and no event followed `seq`. */
  saidAllBy(seq: number): boolean {
    return this.finished && seq === this.#seq;
  }

  canResume(seq: number): boolean {
    return Number.isSafeInteger(seq) && seq >= this.oldest - 1 && seq >= 0 && seq <= this.#seq;
  }

  /**
   * Sends one message, now or when a client reconnects.
   *
   * @param once skips the message if the same text is already buffered
   * @param _last it is the last one
   */
  send(data: string, once = false, _last = false): void {
    if (!this.#resumable) return void this.#write(eventText(data));
    if (this.#abandoned) return;
    if (once && this.waits(data)) return;
    this.#seq += 1;
    const fits = this.#store(data);
    if (this.#response) {
      this.#written = this.#seq;
      this.#trim();
      this.#write(numberedText(this.#prefix, this.#seq, data));
    } else if (this.#full) this.#setPace(true);
    // This leaves a gap, so a client that reconnects gets an error.
    if (!fits) this.#forget();
  }

  /** No more events will follow: ends the response, if there is one. */
  finish(now: number): void {
    this.finished = true;
    const response = this.#part(now);
    this.delivered = response !== undefined;
    this.unreadSince = now;
    response?.end();
    if (!this.#slow) this.#pace = undefined;
  }

  /** Ends the response and asks its client to reconnect, if it can. */
  release(retryMs: number, now: number): void {
    const response = this.#part(now);
    if (response && this.#resumable) response.write(retryText(retryMs));
    response?.end();
    this.#setPace(this.#full);
  }

  /** A response has closed. If it carried this stream, the stream buffers new events until a client reconnects. */
  detach(response: HttpResponse, now: number): void {
    if (response !== this.#response) return;
    this.#part(now);
    this.#setPace(this.#full);
  }

  /** No client will reconnect: discards the buffered events and all later ones. */
  abandon(): void {
    this.#abandoned = true;
    this.#forget();
    this.#setPace(false);
  }

  drained(): void {
    this.#setPace(false);
  }

  /** Keeps the connection open while nothing is sent. */
  keepAlive(): void {
    if (!this.#slow) this.#response?.write(KEEP_ALIVE);
  }

  #part(now: number): HttpResponse | undefined {
    const response = this.#response;
    this.#response = undefined;
    this.unreadSince ??= now;
    return response;
  }

  #eventId(seq: number): string {
    return `${this.#resumable?.id ?? ''}_${seq}`;
  }

  /** True if the stream has no reader and the same text is already buffered for the next one. */
  waits(data: string): boolean {
    return !this.#response && this.#texts.includes(data, Math.max(0, this.#written + 1 - this.oldest));
  }

  get #full(): boolean {
    const { maxEvents = 0, maxLength = 0 } = this.#resumable ?? {};
    return this.#texts.length >= maxEvents || this.#length >= maxLength;
  }

  /** @returns false if the event exceeds the server's byte quota */
  #store(text: string): boolean {
    this.#texts.push(text);
    this.#length += text.length;
    return this.#resumable?.room.grow(heapBytes(text)) ?? true;
  }

  #forget(): void {
    for (const text of this.#texts) this.#resumable?.room.shrink(heapBytes(text));
    this.#texts.length = 0;
    this.#length = 0;
  }

  /**
   * Drops the oldest events beyond the limits while the stream has a reader. Events that were never written stay in the
   * buffer, and the sender slows down.
   */
  #trim(): void {
    const { maxEvents = 0, maxLength = 0 } = this.#resumable ?? {};
    while (this.#texts.length > maxEvents || (this.#length > maxLength && this.#texts.length > 1)) {
      const text = this.#texts.shift() ?? '';
      this.#length -= text.length;
      this.#resumable?.room.shrink(heapBytes(text));
    }
  }

  /** Writes the events after `seq`. Events that were held back without a reader may then follow. */
  #writeFrom(seq: number): void {
    let flows = true;
    const { oldest } = this;
    for (const [index, text] of this.#texts.entries()) {
      if (oldest + index > seq) flows = this.#response?.write(numberedText(this.#prefix, oldest + index, text)) ?? true;
    }
    this.#written = this.#seq;
    if (this.finished) {
      this.delivered = true;
      this.#part(0)?.end();
    } else this.#setPace(!flows);
  }

  #write(text: string): void {
    if (this.#response && !this.#response.write(text)) this.#setPace(true);
  }

  /** The reader is slow, or has caught up. */
  protected report(slow: boolean): void {
    this.#pace?.(slow);
  }

  #setPace(slow: boolean): void {
    if (slow === this.#slow) return;
    this.#slow = slow;
    this.report(slow);
    if (this.finished && !slow) this.#pace = undefined;
  }
}
