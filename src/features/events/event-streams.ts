/**
 * The open streams of events: each sends its subscription's events as its client reads them, a heartbeat while there are none, and ends
 * when its client or its rights do.
 */
import type { Timer } from '../../core/kernel/clock.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { type ProtocolError, toWireError, type WireError, wireError } from '../../core/protocol/errors.ts';
import { isThenable, type JsonObject } from '../../core/protocol/json.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import { notifyAborted, respond } from '../../core/requests/active-request.ts';
import type { Core } from '../../core/server/feature.ts';
import type { EventPosition } from './event-cursor.ts';
import { endOfType } from './event-definition.ts';
import type { EventTopics } from './event-topics.ts';
import { codesOf, EVENT_NOTICES, type EventsProfile, eventsError } from './event-wire.ts';
import type { EventBatch, EventSubscription } from './subscription.ts';

/** Events of one batch: the next one is read when the transport has taken it. */
const BATCH = 100;
/** Milliseconds between two heartbeats: clients expect one in 30 s. */
const BEAT_MS = 25_000;
/** Heartbeats between two checks of the rights of a stream. */
const BEATS_PER_CHECK = 2;
/** Heartbeats after which a client that reads nothing is gone. */
const MOST_STALLED = 5;
/** Milliseconds until a failed read is tried again. */
const RETRY_MS = 5_000;

/** Decides again about the use of an event type. Undefined: no rule has an objection. */
export type EventJudge = (
  request: RequestView,
  name: string,
  args: JsonObject,
) => Verdict | undefined | Promise<Verdict | undefined>;

interface StreamsOptions {
  readonly core: Core;
  readonly topics: EventTopics;
  readonly judge: EventJudge;
}

interface Verdict {
  readonly allows: boolean;
  readonly hidden: boolean;
}

interface OpenStream {
  readonly request: RequestView;
  readonly subscription: EventSubscription;
  readonly name: string;
  readonly args: JsonObject;
  readonly profile: EventsProfile;
  position: EventPosition;
  /** True while a batch is read or is on its way to the transport. */
  pumping: boolean;
  /** The topic may have more than was read. */
  news: boolean;
  /** Heartbeats since the transport was given a batch that it has not taken. */
  stalled: number;
  beats: number;
  ended: boolean;
  unlisten(): void;
}

export class EventStreams {
  readonly #options: StreamsOptions;
  readonly #open = new Set<OpenStream>();
  readonly #ofPrincipal = new Map<string, number>();
  #beat: Timer | undefined;

  constructor(options: StreamsOptions) {
    this.#options = options;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /** The number of open streams of each type. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { name } of this.#open) counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts;
  }

  /**
   * Opens a stream for a request.
   *
   * @param cursor the position that the client sent; undefined for one that this server has not sealed, `now` for none
   * @throws {ProtocolError} if there are too many
   */
  async open(
    request: RequestView,
    subscription: EventSubscription,
    name: string,
    args: JsonObject,
    cursor: EventPosition | undefined | 'now',
  ): Promise<void> {
    const profile = codesOf(request.client.capabilities, this.#options.core.options.events?.codes);
    this.#admit(request.client.principal, profile);
    const stream: OpenStream = {
      ...{ request, subscription, name, args, profile, position: { epoch: '', seq: 0 } },
      ...{ pumping: true, news: true, stalled: 0, beats: 0, ended: false },
      // Before the position is read, so that no event falls between the two.
      unlisten: this.#options.topics.onNews(name, subscription.by, () => {
        stream.news = true;
        this.#pump(stream);
      }),
    };
    this.#open.add(stream);
    this.#count(request.client.principal, 1);
    notifyAborted(request, () => this.#end(stream));
    try {
      if (cursor === 'now') {
        stream.position = await subscription.head();
        if (!stream.ended) this.#active(stream, false);
      } else await this.#resume(stream, cursor);
      if (stream.ended) return;
      stream.pumping = false;
      this.#pump(stream);
      this.#beat ??= this.#options.core.system.clock.after(BEAT_MS, () => this.#beatAll());
    } catch (error) {
      this.#forget(stream);
      throw error;
    }
  }

  /** Ends the streams of a type that is gone, or whose schemas no longer accept what they did. */
  typesChanged(): void {
    for (const stream of this.#open) {
      const end = endOfType(stream.subscription.known.type, this.#options.topics.known(stream.name)?.type);
      if (end) this.#terminate(stream, eventsError(end.failure, stream.profile, end.message, end.data));
    }
  }

  /** The server stops. */
  stop(): void {
    this.#beat?.cancel();
    for (const stream of this.#open) this.#forget(stream);
  }

  #admit(principal: string, profile: EventsProfile): void {
    const { limits, system } = this.#options.core;
    const own = principal === ANONYMOUS ? 0 : (this.#ofPrincipal.get(principal) ?? 0);
    const full =
      this.#open.size >= limits.maxEventStreams
        ? 'maxEventStreams'
        : own >= limits.maxEventStreamsPerPrincipal
          ? 'maxEventStreamsPerPrincipal'
          : undefined;
    if (!full) return;
    system.metrics.refused(`limits.${full}`);
    const message = `${limits[full]} streams of events are open, which is the limit: end one, or poll (the server's option is limits.${full})`;
    throw eventsError('exhausted', profile, message, { limit: full, max: limits[full] });
  }

  #count(principal: string, more: 1 | -1): void {
    const now = (this.#ofPrincipal.get(principal) ?? 0) + more;
    if (now === 0) this.#ofPrincipal.delete(principal);
    else this.#ofPrincipal.set(principal, now);
  }

  /** Continues at a cursor. The events after it follow. */
  async #resume(stream: OpenStream, cursor: EventPosition | undefined): Promise<void> {
    const batch = await stream.subscription.read(cursor, BATCH);
    if (stream.ended) return;
    // The client knows its cursor: the first one after it is that of the first event.
    stream.position = batch.truncated || !cursor ? batch.from : cursor;
    this.#active(stream, batch.truncated);
    this.#send(stream, batch);
  }

  /** Sends the next events, if the transport has taken those before. */
  #pump(stream: OpenStream): void {
    if (stream.pumping || stream.ended || !stream.news) return;
    stream.pumping = true;
    void this.#pumpAll(stream);
  }

  async #pumpAll(stream: OpenStream): Promise<void> {
    while (stream.news && !stream.ended) {
      stream.news = false;
      try {
        const batch = await stream.subscription.read(stream.position, BATCH);
        if (stream.ended) return;
        if (batch.truncated) {
          stream.position = batch.from;
          this.#active(stream, true);
        }
        this.#send(stream, batch);
        if (batch.hasMore) stream.news = true;
        if (batch.events.length > 0) await this.#passed(stream);
      } catch (error) {
        if (stream.ended) return;
        const incident = this.#options.core.system.incident(`events/stream of ${stream.name}`, error);
        const wire = wireError(-32603, `the events could not be read (incident ${incident})`);
        this.#notify(stream, EVENT_NOTICES.error, { error: errorObject(wire) });
        stream.news = true;
        await new Promise<void>((resolve) => void this.#options.core.system.clock.after(RETRY_MS, resolve));
      }
    }
    stream.pumping = false;
  }

  /** Resolves when the transport has taken what was sent. A client that stops reading has nothing more in memory. */
  #passed(stream: OpenStream): Promise<void> {
    const { request } = stream;
    return new Promise((resolve) => {
      const passed = (): void => {
        stream.stalled = 0;
        resolve();
      };
      stream.stalled = 1;
      request.requests.send({ type: 'notify', request, notice: { type: 'passed', passed } });
    });
  }

  #send(stream: OpenStream, batch: EventBatch): void {
    const { subscription } = stream;
    const { epoch } = batch.position;
    for (const { event, data } of batch.events) {
      const cursor = subscription.cursors.seal({ epoch, seq: event.seq });
      this.#notify(stream, EVENT_NOTICES.event, { ...subscription.occurrence(event, data, cursor) });
    }
    stream.position = batch.position;
  }

  #active(stream: OpenStream, truncated: boolean): void {
    const cursor = stream.subscription.cursors.seal(stream.position);
    this.#notify(stream, EVENT_NOTICES.active, { cursor, truncated });
  }

  #notify(stream: OpenStream, method: string, params: JsonObject): void {
    const { request } = stream;
    request.requests.send({ type: 'notify', request, notice: { type: 'streamed', method, params } });
  }

  #beatAll(): void {
    for (const stream of this.#open) this.#beatOf(stream);
    this.#beat =
      this.#open.size === 0 ? undefined : this.#options.core.system.clock.after(BEAT_MS, () => this.#beatAll());
  }

  #beatOf(stream: OpenStream): void {
    stream.beats += 1;
    if (stream.stalled > 0) {
      stream.stalled += 1;
      if (stream.stalled > MOST_STALLED) this.#end(stream);
      return;
    }
    const cursor = stream.subscription.cursors.seal(stream.position);
    this.#notify(stream, EVENT_NOTICES.heartbeat, { cursor });
    if (stream.beats % BEATS_PER_CHECK === 0) void this.#check(stream);
    // The news of another node may be lost.
    stream.news = true;
    this.#pump(stream);
  }

  async #check(stream: OpenStream): Promise<void> {
    const judged = this.#options.judge(stream.request, stream.name, stream.args);
    const verdict = isThenable(judged) ? await judged : judged;
    if (stream.ended) return;
    if (!verdict || (verdict.allows && !verdict.hidden)) return this.#checkSource(stream);
    const failure = verdict.hidden ? 'not found' : 'forbidden';
    this.#terminate(stream, eventsError(failure, stream.profile, 'access to this event type has ended'));
  }

  /** Another server may have ended the subscription that feeds the topic. */
  #checkSource(stream: OpenStream): void {
    const { known, by } = stream.subscription;
    const failed = known.implementation.source?.failureOf(by);
    if (failed) this.#terminate(stream, eventsError(failed.failure, stream.profile, failed.message, failed.data));
  }

  #terminate(stream: OpenStream, error: ProtocolError): void {
    this.#notify(stream, EVENT_NOTICES.terminated, { error: errorObject(toWireError(error, '')) });
    this.#end(stream);
  }

  #end(stream: OpenStream): void {
    if (stream.ended) return;
    this.#forget(stream);
    const { request } = stream;
    if (!request.settled) respond(request, { ok: true, result: { kind: 'subscription ended', id: request.id } });
  }

  #forget(stream: OpenStream): void {
    if (stream.ended) return;
    stream.ended = true;
    stream.unlisten();
    this.#open.delete(stream);
    this.#count(stream.request.client.principal, -1);
  }
}

function errorObject({ code, message, data }: WireError): JsonObject {
  return { code, message, ...(data === undefined ? {} : { data }) };
}
