/** A legacy client's session as HTTP knows it: whose it is, its streams, and when it was last used. The session actor is elsewhere. */
import { nanoid } from 'nanoid';
import type { ConnectionId, Reader } from '../../messages/connection.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import { EventStream, type Resumable } from './event-stream.ts';
import type { HttpResponse } from './message.ts';

/** Characters of a stream's id: 72 random bits, so that no event id can be guessed. */
const STREAM_ID_LENGTH = 12;
/** Most responses that wait to take over the session's own stream. */
const MAX_RESERVES = 4;
/** Most streams of one session that are kept to be replayed, and how many times one stream's bytes they may have together. */
const MAX_STREAMS = 1_024;
const MAX_STREAMS_FULL = 4;

export interface SessionOptions {
  /** The secret id, which the client sends with every request. */
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  readonly dialect: Dialect;
}

/** What a session is lent. */
export interface SessionHost {
  readonly maxReplayEvents: number;
  readonly maxReplayBytes: number;
  readonly retryMs: number;
  /** Says that a reader of this connection is slow, or has caught up. */
  pace(connection: ConnectionId, reader: Reader, slow: boolean): void;
}

export class HttpSession {
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  readonly dialect: Dialect;
  /** Exchanges without an answer, and streams that are being read. */
  busy = 0;
  /** When it was last used, in milliseconds of the server's clock. */
  usedAt: number;
  readonly #host: SessionHost;
  /** Made when there is one: most sessions of a busy host have none. */
  #streams: Map<string, EventStream> | undefined;
  /** What the session says of its own accord. */
  #own: EventStream | undefined;
  #reader: HttpResponse | undefined;
  #reserves: HttpResponse[] | undefined;

  constructor({ id, connection, principal, dialect }: SessionOptions, host: SessionHost, now: number) {
    this.id = id;
    this.connection = connection;
    this.principal = principal;
    this.dialect = dialect;
    this.usedAt = now;
    this.#host = host;
  }

  /** A new stream, that a client can come back to. */
  open(reader: Reader): EventStream {
    const resumable: Resumable = {
      id: nanoid(STREAM_ID_LENGTH),
      maxEvents: this.#host.maxReplayEvents,
      maxLength: this.#host.maxReplayBytes,
      primes: this.dialect.primesStreams,
      retryMs: this.#host.retryMs,
    };
    const stream = new EventStream(resumable, (slow) => this.#host.pace(this.connection, reader, slow));
    this.#streams ??= new Map();
    this.#makeRoom(this.#streams);
    this.#streams.set(resumable.id, stream);
    return stream;
  }

  /** The stream of an event id, and the event's number there. */
  find(eventId: string): { readonly stream: EventStream; readonly seq: number } | undefined {
    const at = eventId.lastIndexOf('_');
    const digits = eventId.slice(at + 1);
    const stream = this.#streams?.get(eventId.slice(0, Math.max(0, at)));
    if (!stream || !/^(0|[1-9]\d{0,15})$/.test(digits)) return undefined;
    const seq = Number(digits);
    return stream.canResume(seq) ? { stream, seq } : undefined;
  }

  /** Says something that belongs to no request. Kept for the next reader when there is none. */
  say(text: string): void {
    this.#mine().send(text, true);
  }

  get takesReaders(): boolean {
    return (this.#reserves?.length ?? 0) < MAX_RESERVES;
  }

  /** Lets a response read the session's own stream, now or when those before it are gone. */
  listen(response: HttpResponse): void {
    if (this.#reader) {
      this.#reserves ??= [];
      this.#reserves.push(response);
      return;
    }
    this.#reader = response;
    this.#mine().attach(response);
  }

  /** A response takes up a stream after an event; should it be the session's own, it is its reader from now on. */
  resume(stream: EventStream, response: HttpResponse, seq: number): void {
    if (stream === this.#own) this.#reader = response;
    stream.resume(response, seq);
  }

  /** A response has taken what was written to it. */
  drained(response: HttpResponse, stream: EventStream | undefined): void {
    if (stream && stream !== this.#own) stream.drained();
    else if (response === this.#reader) this.#own?.drained();
  }

  /** A response that read is gone. */
  left(response: HttpResponse, stream: EventStream | undefined, now: number): void {
    const waiting = this.#reserves?.indexOf(response) ?? -1;
    if (waiting !== -1) return void this.#reserves?.splice(waiting, 1);
    if (stream && stream !== this.#own) return stream.detach(response, now);
    if (response !== this.#reader) return;
    this.#own?.detach(response, now);
    this.#reader = this.#reserves?.shift();
    if (this.#reader) this.#own?.attach(this.#reader);
  }

  /** Forgets streams that have said everything, where there are too many: the oldest, and first those that were read to the end. */
  #makeRoom(streams: Map<string, EventStream>): void {
    let length = 0;
    for (const stream of streams.values()) length += stream.length;
    const most = MAX_STREAMS_FULL * this.#host.maxReplayBytes;
    for (const fits of [({ delivered }: EventStream) => delivered, ({ finished }: EventStream) => finished]) {
      for (const [id, stream] of streams) {
        if (streams.size < MAX_STREAMS && length <= most) return;
        if (!fits(stream)) continue;
        streams.delete(id);
        length -= stream.length;
      }
    }
  }

  /** The stream that the session speaks on of its own accord. */
  #mine(): EventStream {
    this.#own ??= this.open('session');
    return this.#own;
  }

  /** Forgets the streams that nobody has come back for. */
  sweep(now: number, replayMs: number): void {
    for (const [id, stream] of this.#streams ?? []) {
      if (stream === this.#own || !stream.idle || now - (stream.unreadSince ?? now) < replayMs) continue;
      this.#streams?.delete(id);
      stream.abandon();
    }
  }

  /** Ends what is being read. `retryMs`: its clients are to come back. */
  end(retryMs: number | undefined, now: number): void {
    for (const stream of this.#streams?.values() ?? []) {
      if (retryMs === undefined) stream.finish(now);
      else stream.release(retryMs, now);
    }
    for (const response of this.#reserves?.splice(0) ?? []) response.end();
    this.#reader = undefined;
  }
}
