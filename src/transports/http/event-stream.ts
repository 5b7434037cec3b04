/** One stream of server-sent events: what was sent, what is yet to be sent, and the response that carries it, if one does now. */
import { heapBytes } from '../../protocol/heap.ts';
import type { HttpResponse } from './http-message.ts';
import { eventText, idPrefix, KEEP_ALIVE, numberedText, primingText, retryText } from './sse.ts';

/** What makes a stream one that a client can come back to. */
export interface Resumable {
  /** Unguessable: it is part of every event id. */
  readonly id: string;
  /** Most events kept, and most characters of them. */
  readonly maxEvents: number;
  readonly maxLength: number;
  readonly room: ReplayRoom;
  /** Begins with an event that has an id and no data. */
  readonly primes: boolean;
  /** Milliseconds after which a client that lost the stream is to come back. */
  readonly retryMs: number;
}

/** What the streams of a session may keep of the server's quota of bytes. */
export interface ReplayRoom {
  /** Counts so many bytes more. @returns false where they do not fit; they are counted all the same */
  grow(bytes: number): boolean;
  shrink(bytes: number): void;
}

interface Kept {
  readonly seq: number;
  readonly text: string;
}

/** A stream as its session sees it: this one, or one that is kept beyond the process (kept-stream.ts). */
export interface ClientStream {
  readonly finished: boolean;
  readonly delivered: boolean;
  readonly unreadSince: number | undefined;
  readonly id: string | undefined;
  readonly idle: boolean;
  readonly length: number;
  attach(response: HttpResponse, retryMs?: number): void;
  resume(response: HttpResponse, seq: number): boolean;
  saidAllBy(seq: number): boolean;
  canResume(seq: number): boolean;
  send(data: string, once?: boolean, last?: boolean): void;
  finish(now: number): void;
  release(retryMs: number, now: number): void;
  detach(response: HttpResponse, now: number): void;
  abandon(): void;
  drained(): void;
  keepAlive(): void;
}

/** Where a stream goes on that had said something before. */
export interface Before {
  /** The number of its last event. */
  readonly seq: number;
  /** The last that was given to a response, as far as is known. */
  readonly written: number;
  readonly kept: readonly Kept[];
}

export const EVENT_STREAM = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  // 2026-07-28 streamable-http "Receiving Messages": proxies must not hold events back.
  'x-accel-buffering': 'no',
} as const;

export class EventStream implements ClientStream {
  /** Its last event was written, or waits to be fetched. */
  finished = false;
  /** Its last event was written to a response: as far as can be told, its client has everything. */
  delivered = false;
  /** Since when nobody reads it, in milliseconds of the server's clock; undefined while somebody does. */
  unreadSince: number | undefined;
  readonly #resumable: Resumable | undefined;
  /** Says that the reader is slow, or has caught up. */
  readonly #pace: (slow: boolean) => void;
  #response: HttpResponse | undefined;
  #slow = false;
  #abandoned = false;
  /** The last event's number; the first has 1. */
  #seq = 0;
  /** The last event that was given to a response. */
  #written = 0;
  readonly #kept: Kept[] = [];
  #length = 0;
  /** What its events begin with, where they have ids. */
  readonly #prefix: string;

  constructor(resumable: Resumable | undefined, pace: (slow: boolean) => void, before?: Before) {
    this.#resumable = resumable;
    this.#prefix = resumable ? idPrefix(resumable.id) : '';
    this.#pace = pace;
    if (!before) return;
    this.#seq = before.seq;
    this.#written = before.written;
    let fits = true;
    for (const kept of before.kept) fits = this.#keep(kept) && fits;
    if (fits) this.#trim();
    else this.#forget();
  }

  /** The number of the first event that is kept, or of the next. */
  get oldest(): number {
    return this.#kept[0]?.seq ?? this.#seq + 1;
  }

  /** Somebody reads it. */
  get read(): boolean {
    return this.#response !== undefined;
  }

  get id(): string | undefined {
    return this.#resumable?.id;
  }

  /** Nothing more will come of it unless somebody comes for it: it has said everything, or holds as much as it can. */
  get idle(): boolean {
    return this.finished || (!this.#response && this.#full);
  }

  /** Characters of the events that are kept. */
  get length(): number {
    return this.#length;
  }

  /** Begins to write to a response whose head was sent: what was never written, then whatever comes. */
  attach(response: HttpResponse, retryMs = this.#resumable?.retryMs): void {
    this.#response = response;
    this.unreadSince = undefined;
    const { primes = false } = this.#resumable ?? {};
    if (primes) response.write(primingText(this.#eventId(this.#written), retryMs));
    this.#writeFrom(this.#written);
  }

  /**
   * Begins to write to a response whose head was sent: what came after the event `seq`. Whatever response it had is ended.
   *
   * @returns false when that cannot be told any more, or never was an event
   */
  resume(response: HttpResponse, seq: number): boolean {
    if (!this.canResume(seq)) return false;
    this.#response?.end();
    this.#response = response;
    this.unreadSince = undefined;
    this.#writeFrom(seq);
    return true;
  }

  /** It has said everything, and nothing of that came after the event `seq`. */
  saidAllBy(seq: number): boolean {
    return this.finished && seq === this.#seq;
  }

  canResume(seq: number): boolean {
    return Number.isSafeInteger(seq) && seq >= this.oldest - 1 && seq >= 0 && seq <= this.#seq;
  }

  /** Sends one message, now or when somebody comes for it. `once`: not if the same text waits already. */
  send(data: string, once = false): void {
    if (!this.#resumable) return void this.#write(eventText(data));
    if (this.#abandoned) return;
    if (once && this.waits(data)) return;
    this.#seq += 1;
    const fits = this.#keep({ seq: this.#seq, text: data });
    if (this.#response) {
      this.#written = this.#seq;
      this.#trim();
      this.#write(numberedText(this.#prefix, this.#seq, data));
    } else if (this.#full) this.#setPace(true);
    // Then there is a gap for whoever comes back, and they are told so.
    if (!fits) this.#forget();
  }

  /** Nothing more will come: ends the response, if there is one. */
  finish(now: number): void {
    this.finished = true;
    const response = this.#part(now);
    this.delivered = response !== undefined;
    this.unreadSince = now;
    response?.end();
  }

  /** Ends the response, and tells its client to come back, if it can. */
  release(retryMs: number, now: number): void {
    const response = this.#part(now);
    if (response && this.#resumable) response.write(retryText(retryMs));
    response?.end();
    this.#setPace(this.#full);
  }

  /** A response is gone. If it was the one that carried this stream, what comes is kept until somebody comes for it. */
  detach(response: HttpResponse, now: number): void {
    if (response !== this.#response) return;
    this.#part(now);
    this.#setPace(this.#full);
  }

  /** Nobody will come for it any more: what waits is forgotten, and so is what comes. */
  abandon(): void {
    this.#abandoned = true;
    this.#forget();
    this.#setPace(false);
  }

  drained(): void {
    this.#setPace(false);
  }

  /** Keeps the connection open through silence. */
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

  /** Nobody reads it, and the same text waits for somebody who does. */
  waits(data: string): boolean {
    return !this.#response && this.#kept.some(({ seq, text }) => seq > this.#written && text === data);
  }

  get #full(): boolean {
    const { maxEvents = 0, maxLength = 0 } = this.#resumable ?? {};
    return this.#kept.length >= maxEvents || this.#length >= maxLength;
  }

  /** @returns false where it does not fit into what the server may hold */
  #keep(kept: Kept): boolean {
    this.#kept.push(kept);
    this.#length += kept.text.length;
    return this.#resumable?.room.grow(heapBytes(kept.text)) ?? true;
  }

  #forget(): void {
    for (const { text } of this.#kept) this.#resumable?.room.shrink(heapBytes(text));
    this.#kept.length = 0;
    this.#length = 0;
  }

  /** Forgets the oldest events beyond the bounds: while they are being read. Those that nobody could read yet are kept, and the sender slows down. */
  #trim(): void {
    const { maxEvents = 0, maxLength = 0 } = this.#resumable ?? {};
    while (this.#kept.length > maxEvents || (this.#length > maxLength && this.#kept.length > 1)) {
      const text = this.#kept.shift()?.text ?? '';
      this.#length -= text.length;
      this.#resumable?.room.shrink(heapBytes(text));
    }
  }

  /** Writes what came after `seq`; then, what was held back while nobody read may follow. */
  #writeFrom(seq: number): void {
    let flows = true;
    for (const kept of this.#kept) {
      if (kept.seq > seq) flows = this.#response?.write(numberedText(this.#prefix, kept.seq, kept.text)) ?? true;
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

  #setPace(slow: boolean): void {
    if (slow === this.#slow) return;
    this.#slow = slow;
    this.#pace(slow);
  }
}
