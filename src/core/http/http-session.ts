/**
 * A legacy client's session in the HTTP transport: its principal, its streams, and its last use. The session actor is
 * elsewhere.
 */
import { randomId } from '../kernel/random-id.ts';
import type { ConnectionId, Reader } from '../messages/connection-events.ts';
import type { SessionStorage, StoredEvent } from '../messages/session-storage.ts';
import { cellIn } from '../protocol/cell.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import { messageOf } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { TransportHost } from '../transports/transport.ts';
import { DurableStream, type DurableStreamOptions, type InterruptedRequest } from './durable-stream.ts';
import { EventStream, type ReplayRoom, type Resumable, reportPace } from './event-stream.ts';
import type { HttpRequest, HttpResponse } from './http-message.ts';
import type { ResolvedHttpOptions } from './http-options.ts';
import { retryText } from './sse.ts';

/** Length of a stream's id: 72 random bits, so that event ids cannot be guessed. */
const STREAM_ID_LENGTH = 12;
/** Maximum number of responses that wait to take over the session's own stream. */
const MAX_RESERVES = 4;
/**
 * Maximum number of streams that one session stores for replay, and the factor by which their bytes may exceed one
 * stream's limit.
 */
const MAX_STREAMS = 1_024;
const MAX_STREAMS_FULL = 4;
/**
 * Events of a stream that the store may hold beyond the replayed ones: events not yet trimmed, and the first and last
 * event.
 */
const MORE_EVENTS = 1_000;
/** Change in bytes after which the quota is updated: events are many and small. */
const REPLAY_STEP = 4_096;
/** The prefix of the id of a session's own stream, by which it is found after a restart. No other stream has it. */
const OWN = '~';

interface HttpSessionOptions {
  /** The secret id, which the client sends with every request. */
  readonly id: string;
  readonly principal: string;
  readonly dialect: Dialect;
  /** Persists the session beyond this process; undefined without a durable store. */
  readonly keeper: SessionStorage | undefined;
}

/** The services that a session uses. */
export interface HttpSessionHost {
  readonly host: Pick<TransportHost, 'bus' | 'log' | 'retained'>;
  readonly options: Pick<ResolvedHttpOptions, 'maxReplayEvents' | 'maxReplayBytes' | 'retryMs' | 'sessionIdleMs'>;
  /**
   * Continues a stream whose request was interrupted, for a client that resumes it.
   *
   * @returns the exchange of its second run, if there is one
   */
  interrupted(
    session: HttpSession,
    stream: EventStream,
    request: InterruptedRequest,
    resuming: HttpRequest,
  ): Reader | undefined;
}

export class HttpSession implements ReplayRoom {
  readonly id: string;
  /** Set when the session is entered. A session that is being restored has none before. */
  connection: ConnectionId = '';
  readonly principal: string;
  /** The cell of its id. */
  readonly cell: number | undefined;
  readonly dialect: Dialect;
  readonly keeper: SessionStorage | undefined;
  /** Number of unanswered exchanges and of streams with a reader. */
  busy = 0;
  /** Time of the last use, in milliseconds of the server's clock. */
  usedAt: number;
  readonly #connections: HttpSessionHost;
  /** Bytes that the streams buffer for replay, and the part of them that the quota has counted. */
  #replayBytes = 0;
  #counted = 0;
  #departed = false;
  /** Created with the first stream: most sessions of a busy host have none. */
  #streams: Map<string, EventStream> | undefined;
  /** Ids of stored streams that no client has resumed since the session was restored. */
  #asleep: Set<string> | undefined;
  /** The stream of the session's own messages. */
  #own: EventStream | undefined;
  readonly #wokeAt: number;
  #reader: HttpResponse | undefined;
  #reserves: HttpResponse[] | undefined;

  constructor({ id, principal, dialect, keeper }: HttpSessionOptions, connections: HttpSessionHost, now: number) {
    this.id = id;
    this.principal = principal;
    this.cell = cellIn(id);
    this.dialect = dialect;
    this.keeper = keeper;
    this.usedAt = now;
    this.#wokeAt = now;
    this.#connections = connections;
  }

  /**
   * Opens a new resumable stream.
   *
   * @param request the request that it answers
   * @param text of that request, if another process may run it again
   */
  open(reader: Reader, request: RequestId | undefined, text: string | undefined, own = false): EventStream {
    const id = own ? `${OWN}${randomId(STREAM_ID_LENGTH)}` : randomId(STREAM_ID_LENGTH);
    const resumable = this.#resumable(id);
    const pace = (slow: boolean): void => reportPace(this.#connections.host.bus, this.connection, reader, slow);
    const { keeper } = this;
    return this.#add(
      id,
      keeper ? new DurableStream({ resumable, keeper, pace }, request, text) : new EventStream(resumable, pace),
    );
  }

  /** Restores the stored streams: its own stream at once, the others when a client resumes them. */
  async restore(now: number): Promise<void> {
    const ids = await this.keeper?.streams();
    if (!ids?.length) return;
    this.#asleep = new Set(ids);
    for (const id of ids) if (id.startsWith(OWN)) this.#own = (await this.#again(id, now)) ?? this.#own;
  }

  /** Restores the stream of an event id, if it is stored and no client has resumed it yet. */
  bringBack(eventId: string, now: number, resuming: HttpRequest): Promise<unknown> | undefined {
    const id = streamOf(eventId);
    return this.#asleep?.has(id) ? this.#again(id, now, resuming) : undefined;
  }

  async #again(id: string, now: number, resuming?: HttpRequest): Promise<EventStream | undefined> {
    const { keeper } = this;
    if (!keeper) return undefined;
    let before: readonly StoredEvent[];
    try {
      before = await keeper.events(id, this.#connections.options.maxReplayEvents + MORE_EVENTS);
    } catch (error) {
      // Never send other events than the original ones: the client gets an error that the event has expired.
      this.#asleep?.delete(id);
      keeper.trim(id, Number.MAX_SAFE_INTEGER);
      this.#connections.host.log('error', `http: cannot replay a stream: ${messageOf(error)}`);
      return undefined;
    }
    // Two clients may have resumed it at the same time.
    const found = this.#streams?.get(id);
    this.#asleep?.delete(id);
    if (found || before.length === 0) return found;
    const own = id.startsWith(OWN);
    let reader: Reader | undefined = own ? 'session' : undefined;
    const pace = (slow: boolean): void => {
      if (reader) reportPace(this.#connections.host.bus, this.connection, reader, slow);
    };
    const options: DurableStreamOptions = { resumable: this.#resumable(id), keeper, pace };
    const { stream, interrupted } = DurableStream.again(options, before, own, now);
    this.#add(id, stream);
    if (interrupted && resuming) reader = this.#connections.interrupted(this, stream, interrupted, resuming);
    return stream;
  }

  #resumable(id: string): Resumable {
    const { maxReplayEvents, maxReplayBytes, retryMs } = this.#connections.options;
    return {
      id,
      maxEvents: maxReplayEvents,
      maxLength: maxReplayBytes,
      room: this,
      primes: this.dialect.primesStreams,
      retryMs,
    };
  }

  #add(id: string, stream: EventStream): EventStream {
    this.#streams ??= new Map();
    this.#makeRoom(this.#streams);
    this.#streams.set(id, stream);
    return stream;
  }

  /** The stream of an event id, and the event's number in it. */
  find(eventId: string): { readonly stream: EventStream; readonly seq: number } | undefined {
    const at = eventId.lastIndexOf('_');
    const digits = eventId.slice(at + 1);
    const stream = this.#streams?.get(streamOf(eventId));
    if (!stream || !/^(0|[1-9]\d{0,15})$/.test(digits)) return undefined;
    const seq = Number(digits);
    return stream.canResume(seq) ? { stream, seq } : undefined;
  }

  /** Sends a message that belongs to no request. Without a reader, it is buffered for the next one. */
  say(text: string): void {
    this.#mine().send(text, true);
  }

  get takesReaders(): boolean {
    return (this.#reserves?.length ?? 0) < MAX_RESERVES;
  }

  /** Attaches a response to the session's own stream, now or when the earlier readers have closed. */
  listen(response: HttpResponse): void {
    if (this.#reader) {
      this.#reserves ??= [];
      this.#reserves.push(response);
      return;
    }
    this.#reader = response;
    this.#mine().attach(response);
  }

  /**
   * Attaches a response to a stream after an event. If it is the session's own stream, the response becomes its reader.
   */
  resume(stream: EventStream, response: HttpResponse, seq: number): void {
    if (stream === this.#own) this.#reader = response;
    stream.resume(response, seq);
  }

  /** A response has delivered the written bytes. */
  drained(response: HttpResponse, stream: EventStream | undefined): void {
    if (stream && stream !== this.#own) stream.drained();
    else if (response === this.#reader) this.#own?.drained();
  }

  /** The reader of a response is no longer authenticated: ends the response, and asks its client to reconnect. */
  expire(response: HttpResponse, stream: EventStream | undefined, retryMs: number, now: number): void {
    if (this.#reserves?.includes(response)) {
      response.write(retryText(retryMs));
      return response.end();
    }
    const read = stream ?? this.#own;
    if (read !== this.#own || response === this.#reader) read?.release(retryMs, now);
  }

  /** Detaches a response that has closed from its stream. The next reserved response reads the stream instead. */
  detachReader(response: HttpResponse, stream: EventStream | undefined, now: number): void {
    const waiting = this.#reserves?.indexOf(response) ?? -1;
    if (waiting !== -1) return void this.#reserves?.splice(waiting, 1);
    if (stream && stream !== this.#own) return stream.detach(response, now);
    if (response !== this.#reader) return;
    this.#own?.detach(response, now);
    this.#reader = this.#reserves?.shift();
    if (this.#reader) this.#own?.attach(this.#reader);
  }

  /** Evicts finished streams if there are too many: the oldest, and first those that were read to the end. */
  #makeRoom(streams: Map<string, EventStream>): void {
    let length = 0;
    for (const stream of streams.values()) length += stream.length;
    const most = MAX_STREAMS_FULL * this.#connections.options.maxReplayBytes;
    for (const fits of [({ delivered }: EventStream) => delivered, ({ finished }: EventStream) => finished]) {
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
    if (this.#departed || this.#replayBytes < this.#counted + REPLAY_STEP) return true;
    const { retained } = this.#connections.host;
    const excess = (): boolean =>
      retained.excess(this.principal, Math.max(0, this.#replayBytes - this.#counted), this.id) !== undefined;
    if (excess()) this.#giveWay(excess);
    const fits = !excess();
    this.#count();
    return fits;
  }

  shrink(bytes: number): void {
    this.#replayBytes -= bytes;
    if (!this.#departed && this.#replayBytes <= this.#counted - REPLAY_STEP) this.#count();
  }

  /** The session leaves this process or has ended: its buffers no longer count for the quota. */
  leave(): void {
    this.#replayBytes = 0;
    this.#count();
    this.#departed = true;
  }

  #count(): void {
    this.#connections.host.retained.add(this.principal, this.#replayBytes - this.#counted, this.id);
    this.#counted = this.#replayBytes;
  }

  /** Evicts finished streams, the oldest first, while the quota is full. */
  #giveWay(full: () => boolean): void {
    for (const fits of [({ delivered }: EventStream) => delivered, ({ finished }: EventStream) => finished]) {
      for (const [id, stream] of this.#streams ?? []) {
        if (!fits(stream)) continue;
        this.#streams?.delete(id);
        stream.abandon();
        if (!full()) return;
      }
    }
  }

  /** The stream of the session's own messages, created on demand. */
  #mine(): EventStream {
    this.#own ??= this.open('session', undefined, undefined, true);
    return this.#own;
  }

  /** An exchange is answered, or a stream has no reader any more. */
  release(now: number): void {
    this.busy -= 1;
    this.used(now);
  }

  /** Records a use of the session. */
  used(now: number): void {
    this.usedAt = now;
    this.keeper?.used(this.#connections.options.sessionIdleMs);
  }

  /** True if the session may hibernate: it is persisted and has been idle for long enough. */
  sleepy(now: number): boolean {
    const after = this.busy === 0 && !this.#reader ? this.keeper?.sleepsAfterMs : undefined;
    return after !== undefined && now - this.usedAt >= after;
  }

  /** Evicts streams that no client resumed in time. */
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

  /** Ends all streams with a reader. `retryMs`: their clients should reconnect. */
  end(retryMs: number | undefined, now: number): void {
    for (const stream of this.#streams?.values() ?? []) {
      if (retryMs === undefined) stream.finish(now);
      else stream.release(retryMs, now);
    }
    for (const response of this.#reserves?.splice(0) ?? []) response.end();
    this.#reader = undefined;
  }
}

/** The stream id within an event id. */
function streamOf(eventId: string): string {
  return eventId.slice(0, Math.max(0, eventId.lastIndexOf('_')));
}
