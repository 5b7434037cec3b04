/**
 * The events of a server as an async iterable (SEP-3415; experimental): by a stream or by polls. It continues after a lost connection,
 * leaves out repeats, and reports gaps.
 */
import { delayAfter } from '../core/kernel/back-off.ts';
import type { Clock, Timer } from '../core/kernel/clock.ts';
import { ErrorCode } from '../core/protocol/errors.ts';
import { isJsonObject, isObject, type JsonObject } from '../core/protocol/json.ts';
import type { Authorization } from './authorization.ts';
import { ErrorResponse } from './client-errors.ts';

/** An event type that a server offers. */
export interface ServerEventType {
  readonly name: string;
  readonly description: string;
  readonly delivery: readonly string[];
  readonly inputSchema: JsonObject;
  readonly payloadSchema: JsonObject;
}

/** An event of a server. */
export interface ServerEvent {
  readonly gap?: undefined;
  readonly id: string;
  readonly name: string;
  /** When it happened, in ISO 8601. */
  readonly timestamp: string;
  readonly data: JsonObject;
  /** A later `events` call with `since: cursor` continues after this event, or a little before it. Undefined: the server cannot replay. */
  readonly cursor: string | undefined;
}

/** Events before this point may be missing: they are too old, or the server has lost them. */
export interface EventGap {
  readonly gap: true;
  readonly cursor: string | undefined;
}

export interface EventsOptions {
  /** The cursor of an earlier event. Default: from now. */
  readonly since?: string | undefined;
  /** Milliseconds: older events are left out. */
  readonly maxAgeMs?: number | undefined;
  /** Default `auto`: a stream, and polls where the server has none. */
  readonly via?: 'auto' | 'stream' | 'poll' | undefined;
}

/** The options of a gateway that reads the events of an upstream. */
export interface RelayedEventsOptions extends EventsOptions {
  /** Authorizes the requests in place of the connection's authorization. */
  readonly authorization?: Authorization | undefined;
  /**
   * Called while the reader waits, and has so read everything up to this position.
   *
   * @param cursor undefined: the server cannot replay
   * @param more the server has more, which it sends at once
   */
  positioned?(cursor: string | undefined, more: boolean): void;
  /** Receives each failure after which the iterable tries again. */
  failed?(error: Error): void;
}

/** The connection of one iterable. */
export interface EventsHost {
  readonly clock: Clock;
  /** True if the server has streams: those of sessions have none. */
  streams(): boolean;
  poll(params: JsonObject): Promise<unknown>;
  /** @returns a function that ends the stream. `ended` is called once, with the error if there is one */
  stream(
    params: JsonObject,
    receive: (method: string, params: JsonObject) => void,
    ended: (error?: Error) => void,
  ): () => void;
  /** Keeps the process alive while a reader waits. */
  hold<T>(work: () => Promise<T>): Promise<T>;
  /** As in {@link RelayedEventsOptions}. */
  positioned(cursor: string | undefined, more: boolean): void;
  failed(error: Error): void;
  /** Ends the iterable when the client closes, until the returned function is called. */
  closes(end: () => void): () => void;
}

/** Codes of errors that would come again. */
export const FINAL_CODES: ReadonlySet<number> = new Set([
  ...[ErrorCode.MethodNotFound, ErrorCode.InvalidParams, ErrorCode.Forbidden],
  ...[ErrorCode.EventNotFound, ErrorCode.EventForbidden, ErrorCode.EventUnsupported],
  ...[ErrorCode.SketchNotFound, ErrorCode.SketchForbidden, ErrorCode.SketchUnsupported],
]);
/** Codes of a server that has no streams, or none of this type. */
const NO_STREAM: ReadonlySet<number> = new Set([
  ...[ErrorCode.MethodNotFound, ErrorCode.EventUnsupported, ErrorCode.SketchUnsupported],
]);
const BACK_OFF = { fromMs: 1_000, toMs: 30_000 };
/** Shortest time between two polls. */
const LEAST_POLL_MS = 1_000;
/** A stream that is silent for as long, or two heartbeats, is dead. */
const SILENT_MS = 65_000;
/** Unread events after which the stream ends until they are read. It continues after them. */
const MOST_UNREAD = 1_000;
/** The last ids, by which repeats are recognized. */
const MOST_IDS = 1_000;

/** Iterate it once; leaving the loop ends the subscription. */
export class ServerEvents implements AsyncIterableIterator<ServerEvent | EventGap> {
  readonly #host: EventsHost;
  readonly #params: JsonObject;
  #via: 'stream' | 'poll';
  readonly #mayPoll: boolean;
  #cursor: string | undefined;
  readonly #unread: (ServerEvent | EventGap)[] = [];
  readonly #ids = new Set<string>();
  #waiting: { resolve(result: IteratorResult<ServerEvent | EventGap>): void; reject(error: unknown): void } | undefined;
  #ended = false;
  /** The server has answered. A further stream continues at the cursor, or, without one, after a gap. */
  #begun = false;
  /** The server has more, which it sends at once. */
  #hasMore = false;
  /** The stream was ended because too much is unread. */
  #paused = false;
  #error: Error | undefined;
  #failures = 0;
  #timer: Timer | undefined;
  #stop: (() => void) | undefined;
  readonly #unfollow: () => void;

  constructor(name: string, args: JsonObject, { since, maxAgeMs, via = 'auto' }: EventsOptions, host: EventsHost) {
    this.#host = host;
    this.#cursor = since;
    this.#params = { name, arguments: args, ...(maxAgeMs === undefined ? {} : { maxAgeMs }) };
    this.#mayPoll = via === 'auto';
    this.#via = via === 'poll' ? 'poll' : 'stream';
    this.#unfollow = host.closes(() => this.#end());
    this.#begin();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ServerEvent | EventGap>> {
    const first = this.#unread.shift();
    if (first) {
      if (this.#unread.length === 0 && this.#paused) {
        this.#paused = false;
        this.#later(0);
      }
      return Promise.resolve({ done: false, value: first });
    }
    if (this.#error) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    if (this.#waiting) return Promise.reject(new Error('events: expected one `next` at a time'));
    const event = new Promise<IteratorResult<ServerEvent | EventGap>>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    this.#positioned();
    return this.#host.hold(() => event);
  }

  return(): Promise<IteratorResult<ServerEvent | EventGap>> {
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  #begin(): void {
    if (this.#via === 'stream' && !this.#host.streams()) {
      if (!this.#mayPoll) return this.#end(new Error('events: this server has no streams: use via: "poll"'));
      this.#via = 'poll';
    }
    if (this.#via === 'poll') return void this.#poll();
    let stopped = false;
    let silence = this.#silent();
    const stop = this.#host.stream(
      { ...this.#params, cursor: this.#cursor ?? null },
      (method, params) => {
        if (stopped) return;
        silence.cancel();
        silence = this.#silent();
        this.#received(method, params);
      },
      (error) => {
        silence.cancel();
        if (stopped) return;
        this.#stop = undefined;
        this.#failed(error);
      },
    );
    this.#stop = () => {
      stopped = true;
      silence.cancel();
      this.#stop = undefined;
      stop();
    };
  }

  /** A stream without a heartbeat is dead: another one continues after it. */
  #silent(): Timer {
    return this.#host.clock.after(SILENT_MS, () => {
      this.#stop?.();
      this.#again();
    });
  }

  #received(method: string, params: JsonObject): void {
    const cursor = typeof params.cursor === 'string' ? params.cursor : undefined;
    this.#failures = 0;
    switch (method) {
      case 'notifications/events/active':
        if (params.truncated === true || (this.#begun && this.#cursor === undefined))
          this.#offer({ gap: true, cursor });
        this.#begun = true;
        break;
      case 'notifications/events/event':
        this.#occurred(params, cursor);
        break;
      case 'notifications/events/heartbeat':
        break;
      case 'notifications/events/terminated': {
        const { code, message, data } = isJsonObject(params.error) ? params.error : {};
        this.#stop?.();
        const why = 'events: the server has ended the subscription';
        return this.#end(new ErrorResponse(why, Number(code), String(message), data));
      }
      default:
        return;
    }
    if (cursor !== undefined) this.#cursor = cursor;
    this.#positioned();
    if (this.#unread.length < MOST_UNREAD) return;
    this.#paused = true;
    this.#stop?.();
  }

  async #poll(): Promise<void> {
    try {
      const result = await this.#host.poll({ ...this.#params, cursor: this.#cursor ?? null });
      if (this.#ended) return;
      const { events, cursor, truncated, hasMore, nextPollMs } = isObject(result) ? result : {};
      const next = typeof cursor === 'string' ? cursor : undefined;
      this.#failures = 0;
      if (truncated === true) this.#offer({ gap: true, cursor: next });
      const list: readonly unknown[] = Array.isArray(events) ? events : [];
      // Only the position after all of them is known: before it, the one in front of them loses nothing.
      for (const [place, event] of list.entries())
        if (isJsonObject(event)) this.#occurred(event, place === list.length - 1 ? next : this.#cursor);
      this.#cursor = next ?? this.#cursor;
      this.#begun = true;
      this.#hasMore = hasMore === true;
      this.#positioned();
      const wait = typeof nextPollMs === 'number' && nextPollMs > LEAST_POLL_MS ? nextPollMs : LEAST_POLL_MS;
      if (this.#unread.length >= MOST_UNREAD) this.#paused = true;
      else this.#later(this.#hasMore ? 0 : Math.min(wait, BACK_OFF.toMs));
    } catch (error) {
      this.#failed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #failed(error: Error | undefined): void {
    if (this.#ended) return;
    if (error instanceof ErrorResponse && FINAL_CODES.has(error.code)) {
      if (!NO_STREAM.has(error.code) || !this.#mayPoll || this.#via === 'poll') return this.#end(error);
      this.#via = 'poll';
      return this.#later(0);
    }
    if (error) this.#host.failed(error);
    this.#again();
  }

  #again(): void {
    this.#failures += 1;
    this.#later(delayAfter(BACK_OFF, Math.min(this.#failures, 10)));
  }

  #later(ms: number): void {
    if (this.#ended) return;
    this.#timer?.cancel();
    this.#timer = this.#host.clock.after(ms, () => {
      this.#timer = undefined;
      if (!this.#ended) this.#begin();
    });
  }

  #occurred({ eventId, name, timestamp, data }: JsonObject, cursor: string | undefined): void {
    if (typeof eventId !== 'string' || this.#ids.has(eventId)) return;
    this.#ids.add(eventId);
    if (this.#ids.size > MOST_IDS) for (const oldest of this.#ids) if (this.#ids.delete(oldest)) break;
    this.#offer({
      id: eventId,
      name: typeof name === 'string' ? name : String(this.#params.name),
      timestamp: typeof timestamp === 'string' ? timestamp : '',
      data: isJsonObject(data) ? data : {},
      cursor,
    });
  }

  #offer(value: ServerEvent | EventGap): void {
    if (this.#ended) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting.resolve({ done: false, value });
    else this.#unread.push(value);
  }

  #positioned(): void {
    if (this.#begun && this.#waiting && !this.#ended) this.#host.positioned(this.#cursor, this.#hasMore);
  }

  #end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#timer?.cancel();
    this.#stop?.();
    this.#unfollow();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!waiting) this.#error = error;
    else if (error) waiting.reject(error);
    else waiting.resolve({ done: true, value: undefined });
  }
}

/** Reads an event type of a list. @returns undefined for what is none */
export function readEventType(element: unknown): ServerEventType | undefined {
  if (!isObject(element) || typeof element.name !== 'string') return undefined;
  const { name, description, delivery, inputSchema, payloadSchema } = element;
  return {
    ...element,
    name,
    description: typeof description === 'string' ? description : '',
    delivery: Array.isArray(delivery) ? delivery.filter((mode) => typeof mode === 'string') : [],
    inputSchema: isJsonObject(inputSchema) ? inputSchema : { type: 'object' },
    payloadSchema: isJsonObject(payloadSchema) ? payloadSchema : { type: 'object' },
  };
}
