/** A legacy client's session as HTTP knows it: whose it is, its streams, and when it was last used. The session actor is elsewhere. */
import { nanoid } from 'nanoid';
import type { ConnectionId, Reader } from '../../messages/connection-events.ts';
import type { SessionStorage, StoredEvent } from '../../messages/session-storage.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import type { Quota } from '../../quota.ts';
import { DurableStream, type DurableStreamOptions } from './durable-stream.ts';
import { type ClientStream, EventStream, type ReplayRoom, type Resumable } from './event-stream.ts';
import type { HttpResponse } from './http-message.ts';

/** Characters of a stream's id: 72 random bits, so that no event id can be guessed. */
const STREAM_ID_LENGTH = 12;
/** Most responses that wait to take over the session's own stream. */
const MAX_RESERVES = 4;
/** Most streams of one session that are kept to be replayed, and how many times one stream's bytes they may have together. */
const MAX_STREAMS = 1_024;
const MAX_STREAMS_FULL = 4;
/** Events that the store may have of a stream beyond those that are replayed: what has yet to be trimmed, and its ends. */
const MORE_EVENTS = 1_000;
/** Bytes by which what is kept changes before the quota is told: events are many, and small. */
const REPLAY_STEP = 4_096;
/** What the id of a session's own stream begins with, which no other's does: so it is found again. */
const OWN = '~';

export interface HttpSessionOptions {
  /** The secret id, which the client sends with every request. */
  readonly id: string;
  readonly principal: string;
  readonly dialect: Dialect;
  /** Keeps it beyond this process; undefined where nothing does. */
  readonly keeper: SessionStorage | undefined;
}

/** What a session is lent. */
export interface HttpSessionDeps {
  readonly maxReplayEvents: number;
  readonly maxReplayBytes: number;
  /** In bytes, of what clients make the server hold. */
  readonly retained: Quota;
  readonly retryMs: number;
  readonly sessionIdleMs: number;
  /** The text of the error for a request whose process is gone. */
  lost(request: RequestId): string;
  /** What is kept of a stream cannot be read. */
  unreadable(error: unknown): void;
  /** Says that a reader of this connection is slow, or has caught up. */
  pace(connection: ConnectionId, reader: Reader, slow: boolean): void;
}

export class HttpSession implements ReplayRoom {
  readonly id: string;
  /** Set when it is entered: one that wakes has none before. */
  connection: ConnectionId = '';
  readonly principal: string;
  readonly dialect: Dialect;
  readonly keeper: SessionStorage | undefined;
  /** Exchanges without an answer, and streams that are being read. */
  busy = 0;
  /** When it was last used, in milliseconds of the server's clock. */
  usedAt: number;
  readonly #host: HttpSessionDeps;
  /** What its streams keep to be replayed, in bytes, and as much of it as the quota has counted. */
  #replayBytes = 0;
  #counted = 0;
  #left = false;
  /** Made when there is one: most sessions of a busy host have none. */
  #streams: Map<string, ClientStream> | undefined;
  /** The ids of streams that are kept, and that nobody has come back to since the session woke. */
  #asleep: Set<string> | undefined;
  /** What the session says of its own accord. */
  #own: ClientStream | undefined;
  readonly #wokeAt: number;
  #reader: HttpResponse | undefined;
  #reserves: HttpResponse[] | undefined;

  constructor({ id, principal, dialect, keeper }: HttpSessionOptions, host: HttpSessionDeps, now: number) {
    this.id = id;
    this.principal = principal;
    this.dialect = dialect;
    this.keeper = keeper;
    this.usedAt = now;
    this.#wokeAt = now;
    this.#host = host;
  }

  /** A new stream, that a client can come back to. @param request what it answers */
  open(reader: Reader, request: RequestId | undefined, own = false): ClientStream {
    const id = own ? `${OWN}${nanoid(STREAM_ID_LENGTH)}` : nanoid(STREAM_ID_LENGTH);
    const resumable = this.#resumable(id);
    const pace = (slow: boolean): void => this.#host.pace(this.connection, reader, slow);
    const { keeper } = this;
    return this.#add(
      id,
      keeper ? new DurableStream({ resumable, keeper, pace }, request) : new EventStream(resumable, pace),
    );
  }

  /** Takes up what is kept of its streams: what it says itself at once, the others when somebody comes back to them. */
  async restore(now: number): Promise<void> {
    const ids = await this.keeper?.streams();
    if (!ids?.length) return;
    this.#asleep = new Set(ids);
    for (const id of ids) if (id.startsWith(OWN)) this.#own = (await this.#again(id, now)) ?? this.#own;
  }

  /** Takes up the stream of an event id, if it is kept and nobody has come back to it yet. */
  bringBack(eventId: string, now: number): Promise<unknown> | undefined {
    const id = streamOf(eventId);
    return this.#asleep?.has(id) ? this.#again(id, now) : undefined;
  }

  async #again(id: string, now: number): Promise<ClientStream | undefined> {
    const { keeper } = this;
    if (!keeper) return undefined;
    let before: readonly StoredEvent[];
    try {
      before = await keeper.events(id, this.#host.maxReplayEvents + MORE_EVENTS);
    } catch (error) {
      // Nobody is told anything else than what was said: its client learns that the event is gone.
      this.#asleep?.delete(id);
      keeper.trim(id, Number.MAX_SAFE_INTEGER);
      this.#host.unreadable(error);
      return undefined;
    }
    // Two may have come for it.
    const found = this.#streams?.get(id);
    this.#asleep?.delete(id);
    if (found || before.length === 0) return found;
    const own = id.startsWith(OWN);
    const pace = own ? (slow: boolean): void => this.#host.pace(this.connection, 'session', slow) : nothing;
    const options: DurableStreamOptions = { resumable: this.#resumable(id), keeper, pace };
    return this.#add(id, DurableStream.again(options, before, own, this.#host.lost, now));
  }

  #resumable(id: string): Resumable {
    const { maxReplayEvents, maxReplayBytes, retryMs } = this.#host;
    return {
      id,
      maxEvents: maxReplayEvents,
      maxLength: maxReplayBytes,
      room: this,
      primes: this.dialect.primesStreams,
      retryMs,
    };
  }

  #add(id: string, stream: ClientStream): ClientStream {
    this.#streams ??= new Map();
    this.#makeRoom(this.#streams);
    this.#streams.set(id, stream);
    return stream;
  }

  /** The stream of an event id, and the event's number there. */
  find(eventId: string): { readonly stream: ClientStream; readonly seq: number } | undefined {
    const at = eventId.lastIndexOf('_');
    const digits = eventId.slice(at + 1);
    const stream = this.#streams?.get(streamOf(eventId));
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
  resume(stream: ClientStream, response: HttpResponse, seq: number): void {
    if (stream === this.#own) this.#reader = response;
    stream.resume(response, seq);
  }

  /** A response has taken what was written to it. */
  drained(response: HttpResponse, stream: ClientStream | undefined): void {
    if (stream && stream !== this.#own) stream.drained();
    else if (response === this.#reader) this.#own?.drained();
  }

  /** A response that read is gone. */
  left(response: HttpResponse, stream: ClientStream | undefined, now: number): void {
    const waiting = this.#reserves?.indexOf(response) ?? -1;
    if (waiting !== -1) return void this.#reserves?.splice(waiting, 1);
    if (stream && stream !== this.#own) return stream.detach(response, now);
    if (response !== this.#reader) return;
    this.#own?.detach(response, now);
    this.#reader = this.#reserves?.shift();
    if (this.#reader) this.#own?.attach(this.#reader);
  }

  /** Forgets streams that have said everything, where there are too many: the oldest, and first those that were read to the end. */
  #makeRoom(streams: Map<string, ClientStream>): void {
    let length = 0;
    for (const stream of streams.values()) length += stream.length;
    const most = MAX_STREAMS_FULL * this.#host.maxReplayBytes;
    for (const fits of [({ delivered }: ClientStream) => delivered, ({ finished }: ClientStream) => finished]) {
      for (const [id, stream] of streams) {
        if (streams.size < MAX_STREAMS && length <= most) return;
        if (!fits(stream)) continue;
        streams.delete(id);
        length -= stream.length;
        stream.abandon();
      }
    }
  }

  grow(bytes: number): boolean {
    this.#replayBytes += bytes;
    if (this.#left || this.#replayBytes < this.#counted + REPLAY_STEP) return true;
    const { retained } = this.#host;
    const excess = (): boolean =>
      retained.excess(this.principal, Math.max(0, this.#replayBytes - this.#counted), this.id) !== undefined;
    if (excess()) this.#giveWay(excess);
    const fits = !excess();
    this.#count();
    return fits;
  }

  shrink(bytes: number): void {
    this.#replayBytes -= bytes;
    if (!this.#left && this.#replayBytes <= this.#counted - REPLAY_STEP) this.#count();
  }

  /** It leaves this process, or has ended: what its streams keep counts no more. */
  leave(): void {
    this.#replayBytes = 0;
    this.#count();
    this.#left = true;
  }

  #count(): void {
    this.#host.retained.add(this.principal, this.#replayBytes - this.#counted, this.id);
    this.#counted = this.#replayBytes;
  }

  /** Forgets streams that have said everything, the oldest first, for as long as the quota is full. */
  #giveWay(full: () => boolean): void {
    for (const fits of [({ delivered }: ClientStream) => delivered, ({ finished }: ClientStream) => finished]) {
      for (const [id, stream] of this.#streams ?? []) {
        if (!fits(stream)) continue;
        this.#streams?.delete(id);
        stream.abandon();
        if (!full()) return;
      }
    }
  }

  /** The stream that the session speaks on of its own accord. */
  #mine(): ClientStream {
    this.#own ??= this.open('session', undefined, true);
    return this.#own;
  }

  /** It was used just now. */
  used(now: number): void {
    this.usedAt = now;
    this.keeper?.used(this.#host.sessionIdleMs);
  }

  /** Whether it leaves memory, because it is kept and nobody has used it for long enough. */
  sleepy(now: number): boolean {
    const after = this.busy === 0 && !this.#reader ? this.keeper?.sleepsAfterMs : undefined;
    return after !== undefined && now - this.usedAt >= after;
  }

  /** Forgets the streams that nobody has come back for. */
  sweep(now: number, replayMs: number): void {
    for (const [id, stream] of this.#streams ?? []) {
      if (stream === this.#own || !stream.idle || now - (stream.unreadSince ?? now) < replayMs) continue;
      this.#streams?.delete(id);
      stream.abandon();
    }
    if (!this.#asleep || now - this.#wokeAt < replayMs) return;
    for (const id of this.#asleep) this.keeper?.trim(id, Number.MAX_SAFE_INTEGER);
    this.#asleep = undefined;
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

/** The stream that an event id names. */
function streamOf(eventId: string): string {
  return eventId.slice(0, Math.max(0, eventId.lastIndexOf('_')));
}

const nothing = (): void => {};
