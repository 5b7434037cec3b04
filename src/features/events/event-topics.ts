/**
 * The topics of a server, and the types of their events: registers types, emits events, and reads and matches them for subscribers of
 * each kind of delivery.
 */
import type { EmitOptions, EmittedEvent, EmittedType } from '../../core/execution/context.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import type { ResourceWatch } from '../../core/messages/subscription-messages.ts';
import { EVENTS_EXTENSION } from '../../core/protocol/extensions.ts';
import { describe, isJsonObject, isThenable, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import type { EventType } from '../../core/protocol/types.ts';
import type { Compiled } from '../../core/registry/offers.ts';
import { elements, type Registration } from '../../core/registry/registration.ts';
import { inOneLine } from '../../core/schema/problems.ts';
import type { Core } from '../../core/server/feature.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow } from '../../core/store/store.ts';
import { type AnyEventType, compileEvent, type EventImplementation, type EventSubscriber } from './event-definition.ts';
import { EventError } from './event-error.ts';
import { EVENT_ID } from './event-wire.ts';
import { PartCache } from './part-cache.ts';
import { Topic, type TopicPage } from './topic.ts';
import { frozen, type TopicEvent } from './topic-document.ts';

/** A registered event type. */
export interface RegisteredEvent<Data = unknown> extends EmittedType<Data> {
  /**
   * Emits an event.
   *
   * @returns once the event is durable, and every subscriber that may have it will get it
   * @throws {EventError} if the data or an option is invalid, a limit is reached, or the store fails
   * @example await paid.emit({ order: 'o1' }, { id: payment.id, at: payment.date });
   */
  emit(data: Data, options?: EmitOptions): Promise<EmittedEvent>;
  /** Removes the type. Its events stay in the store until their time has passed. */
  remove(): void;
}

/** Returns the data of an event that a subscriber gets; undefined if it does not get the event. */
export type EventMatcher = (event: TopicEvent) => JsonObject | undefined;

/** A type of events, as a part of the server reads it. */
export interface KnownEvent {
  readonly type: EventType;
  readonly implementation: EventImplementation;
  /** The reference of this definition: another one has another. */
  readonly ref: number;
}

/** An event type with its implementation. */
export type CompiledEvent = Compiled<EventType, EventImplementation>;

/** An event of another server, or the place where some are missing. */
export interface ForeignEvent {
  readonly id: string;
  /** When it happened, in milliseconds since 1970. */
  readonly at: number;
  /** Undefined for the place of a gap. */
  readonly data: JsonObject | undefined;
}

/** Maximum number of topics in memory that nothing uses. */
const MAX_IDLE = 1_000;
/** Milliseconds until the topics of a type are counted again. */
const COUNT_MS = 60_000;
const PAGE = 1_000;
/** Milliseconds of `match` and `shape` that are slow. */
const SLOW_MS = 20;

export class EventTopics {
  readonly events: Registration<AnyEventType>;
  /** The same for types of other servers, whose mounts have compiled them. */
  readonly relayed: Registration<CompiledEvent>;
  readonly #core: Core;
  readonly #shared: boolean;
  readonly #clock: Clock;
  /** By the name of the type and the value of its member `by`, on two lines; the longest unused first. */
  readonly #topics = new Map<string, Topic>();
  readonly #parts = new PartCache();
  readonly #implementations = new Map<number, EventImplementation>();
  /** The number of topics of each type, as counted at that time. */
  readonly #counts = new Map<string, { readonly at: number; topics: number }>();
  /** The types whose functions were slow or have failed. */
  readonly #warned = new Set<string>();
  #refs = 0;
  readonly #epoch: string;

  readonly #emitted: (name: string) => void;

  /**
   * @param shared true if other nodes share the store
   * @param emitted counts the events of a type
   */
  constructor(
    core: Core,
    shared: boolean,
    registry: Parameters<typeof elements<AnyEventType, EventType, EventImplementation>>[0]['registry'],
    emitted: (name: string) => void,
  ) {
    this.#emitted = emitted;
    this.#core = core;
    this.#shared = shared;
    this.#clock = core.system.clock;
    this.#epoch = core.store.durable ? '' : randomId(8);
    const { elements: hooks } = core;
    const actors: Omit<Parameters<typeof elements<never, EventType, EventImplementation>>[0], 'compile'> = {
      registry,
      catalogue: hooks.catalogues.events,
      executors: [
        {
          send: (mail) => {
            if (mail.type === 'attach') this.#implementations.set(mail.ref, mail.implementation);
            else this.#implementations.delete(mail.ref);
          },
        },
      ],
      nextRef: () => ++this.#refs,
      offered: () => this.announce(),
      guarded() {
        for (const each of hooks.guarded) each();
      },
    };
    this.events = elements({ ...actors, compile: compileEvent });
    this.relayed = elements({ ...actors, compile: (event: CompiledEvent) => event });
  }

  /** Announces that the server has event types, or may have some later. */
  announce(): void {
    const { capabilities } = this.#core;
    capabilities.add('events');
    capabilities.extend(EVENTS_EXTENSION, { listChanged: true });
  }

  /** The number of topics in memory. */
  get size(): number {
    return this.#topics.size;
  }

  /** The topics in memory, for the inspector. */
  all(): Iterable<Topic> {
    return this.#topics.values();
  }

  /** An enabled type; undefined if there is none of this name. */
  known(name: string): KnownEvent | undefined {
    const element = this.#core.elements.catalogues.events.get(name);
    const implementation = element && this.#implementations.get(element.ref);
    return implementation && { type: element.definition, implementation, ref: element.ref };
  }

  /**
   * Emits an event.
   *
   * @param name of a registered type
   * @param payload the data, which the schema of the type checks
   * @param options its id, its time, and what emits it
   * @returns once the event is durable
   * @throws {EventError}
   */
  async emit(name: string, payload: unknown, options: EmitOptions = {}): Promise<EmittedEvent> {
    const found = this.known(name);
    if (!found || found.implementation.source)
      throw new EventError(
        'unknown',
        `event ${describe(name)}: no such event type. Register it: server.event(name, { … })`,
      );
    const { label, payload: schema, by } = found.implementation;
    const { id, trace, owner } = options;
    if (id !== undefined && (typeof id !== 'string' || !EVENT_ID.test(id)))
      throw new EventError('invalid', `${label}: id: expected 1 to 256 visible ASCII characters, got ${describe(id)}`);
    const at = timeOf(options.at, label) ?? this.#clock.date();
    const checked = await schema.check(payload);
    if (!checked.ok)
      throw new EventError('invalid', `${label}: the data does not fit "payload": ${inOneLine(checked.problems)}`);
    const text = textOf(checked.value, label);
    const { maxEventBytes } = this.#core.limits;
    const bytes = Buffer.byteLength(text);
    if (bytes > maxEventBytes)
      throw new EventError(
        'limit',
        `${label}: the data has ${bytes} bytes of at most ${maxEventBytes} (limits.maxEventBytes). Emit less, such as an id by which clients read the rest`,
      );
    const data = frozen(fromText(text, label));
    if (!isJsonObject(data))
      throw new EventError('invalid', `${label}: expected data that is an object, got ${describe(data)}`);
    const value = by === undefined ? '' : data[by];
    if (typeof value !== 'string' && typeof value !== 'number')
      throw new EventError(
        'invalid',
        `${label}: ${by}: expected a string or a number, because it is "by", got ${describe(value)}`,
      );
    const topic = this.#topic(name, String(value), found.implementation);
    const event = { id: id ?? randomId(), at, trace, owner, data, text };
    const committed = await topic.append(event, id !== undefined);
    return { id: committed.id, seq: committed.seq };
  }

  /**
   * Appends an event of another server under the id that the server gave it. An event that is too long becomes a gap.
   *
   * @returns once the event is durable
   * @throws {EventError}
   */
  async append(name: string, by: string, { id, at, data }: ForeignEvent): Promise<void> {
    const found = this.known(name);
    if (!found) throw new EventError('unknown', `event "${name}": no such event type`);
    const { label } = found.implementation;
    const { maxEventBytes } = this.#core.limits;
    const text = toText(data ?? {});
    const isGap = data === undefined || Buffer.byteLength(text) > maxEventBytes;
    if (isGap && data && this.#isFirst(`long ${name}`))
      this.#core.log(
        'warning',
        `${label}: an event has more than ${maxEventBytes} bytes (limits.maxEventBytes). Subscribers learn of a gap in its place`,
        { event: 'program' },
      );
    const event = { id, at, trace: undefined };
    const topic = this.#topic(name, by, found.implementation);
    await topic.append(
      isGap ? { ...event, gap: true, data: {}, text: '{}' } : { ...event, data: frozen(data), text },
      true,
    );
  }

  /**
   * Reads the events of a topic after a number, at most `limit` and a mebibyte.
   *
   * @param by the value of the member `by`; the empty string for a type without one
   * @throws {StoreError}
   * @throws {EventError} `unknown`
   */
  read(name: string, by: string, after: number, limit: number): Promise<TopicPage> {
    const found = this.known(name);
    if (!found) return Promise.reject(new EventError('unknown', `event "${name}": no such event type`));
    return this.#topic(name, by, found.implementation).read(after, limit);
  }

  /**
   * Calls back when a topic may have new events: with those that this process has committed, or with none if another process may have
   * committed some.
   *
   * @returns ends it
   */
  onNews(name: string, by: string, listener: (events: readonly TopicEvent[]) => void): () => void {
    const found = this.known(name);
    if (!found) return () => {};
    const topic = this.#topic(name, by, found.implementation);
    const unlisten = topic.onNews(listener);
    const release = found.implementation.source?.hold(by);
    const off = (): void => {
      unlisten();
      release?.();
    };
    if (!this.#shared) return off;
    const watch: ResourceWatch = { uri: newsUri(topic.id), principal: '', announce: () => listener([]) };
    this.#core.subscriptions.send({ type: 'watch', watch });
    return () => {
      off();
      this.#core.subscriptions.send({ type: 'watch ended', watch });
    };
  }

  /**
   * Returns the function that decides which events a subscriber gets, and with which data. What `match` or `shape` throws withholds
   * the event.
   *
   * @param args the checked arguments
   */
  matcher(name: string, args: JsonObject, who: EventSubscriber): EventMatcher {
    const found = this.known(name);
    if (!found) return () => undefined;
    const { label, match, shape, source } = found.implementation;
    const isForThem = (owner: string | undefined): boolean => owner === undefined || owner === who.principal;
    // The other server has chosen the events of a topic that it feeds.
    if (source) return ({ data, gap }) => (gap ? undefined : data);
    if (!match && !shape) return ({ data, owner }) => (isForThem(owner) && fits(data, args) ? data : undefined);
    return ({ id, at, data, owner }) => {
      if (!isForThem(owner)) return undefined;
      const began = this.#clock.now();
      try {
        const event = { id, at, data };
        const matches: unknown = match ? match(event, args, who) : fits(data, args);
        if (isThenable(matches)) throw new TypeError(`${label}: match: expected a boolean, got a promise`);
        if (matches !== true) return undefined;
        if (!shape) return data;
        const shaped: unknown = shape(event, args, who);
        if (shaped === undefined) return undefined;
        if (isThenable(shaped) || !isJsonObject(shaped))
          throw new TypeError(`${label}: shape: expected an object or undefined, got ${describe(shaped)}`);
        return shaped;
      } catch (error) {
        if (this.#isFirst(`failed ${name}`)) this.#core.system.incident(label, error);
        return undefined;
      } finally {
        const ms = this.#clock.now() - began;
        if (ms >= SLOW_MS && this.#isFirst(`slow ${name}`))
          this.#core.log(
            'warning',
            `${label}: match and shape took ${Math.round(ms)} ms for one event. They run for each subscriber: make them faster`,
            { event: 'program' },
          );
      }
    };
  }

  #isFirst(warning: string): boolean {
    return this.#warned.size < this.#warned.add(warning).size;
  }

  #topic(name: string, by: string, { retain }: EventImplementation): Topic {
    const key = `${name}\n${by}`;
    const found = this.#topics.get(key);
    if (found) {
      found.retain = retain;
      this.#topics.delete(key);
      this.#topics.set(key, found);
      return found;
    }
    const { store } = this.#core;
    const topic = new Topic({
      ...{ name, by, store, retain, clock: this.#clock, parts: this.#parts, shared: this.#shared, epoch: this.#epoch },
      admit: () => this.#admit(name),
      committed: (topic, committed) => {
        for (const _ of committed) this.#emitted(name);
        if (this.#shared) this.#core.changes.send({ type: 'resource updated', uri: newsUri(topic.id) });
      },
    });
    this.#topics.set(key, topic);
    if (this.#topics.size > MAX_IDLE) this.#evict();
    return topic;
  }

  /** Those that nothing uses leave memory. */
  #evict(): void {
    for (const [key, topic] of this.#topics) {
      if (this.#topics.size <= MAX_IDLE) return;
      if (topic.busy) continue;
      this.#topics.delete(key);
    }
  }

  /** @throws {EventError} `limit` */
  async #admit(name: string): Promise<void> {
    const now = this.#clock.now();
    let count = this.#counts.get(name);
    if (!count || now - count.at >= COUNT_MS) {
      count = { at: now, topics: await this.#count(name) };
      this.#counts.set(name, count);
    }
    const { maxTopicsPerEvent } = this.#core.limits;
    if (count.topics >= maxTopicsPerEvent) {
      this.#core.system.metrics.refused('limits.maxTopicsPerEvent');
      throw new EventError(
        'limit',
        `event "${name}": it has ${count.topics} topics of at most ${maxTopicsPerEvent} (limits.maxTopicsPerEvent): "by" has too many values. EventTopics leave 30 days after their last event`,
      );
    }
    count.topics += 1;
  }

  async #count(name: string): Promise<number> {
    let topics = 0;
    let after: ActorRow | undefined;
    for (;;) {
      const rows = await this.#core.store.list({ kind: 'topic', name, after, limit: PAGE });
      topics += rows.length;
      after = rows.at(-1);
      if (rows.length < PAGE) return topics;
    }
  }
}

/** The subject under which nodes tell each other of new events: no resource has this URI. */
function newsUri(topic: string): string {
  return `troupe-${topic}`;
}

/** True if each argument equals the member of the same name. */
function fits(data: JsonObject, args: JsonObject): boolean {
  return Object.entries(args).every(([name, value]) => value === undefined || isSame(data[name], value));
}

function isSame(member: unknown, value: unknown): boolean {
  return member === value || (typeof member === 'object' && toText(member) === toText(value));
}

function timeOf(at: unknown, label: string): number | undefined {
  if (at === undefined) return undefined;
  const ms = at instanceof Date ? at.getTime() : at;
  // The years that ISO 8601 writes with four digits.
  if (typeof ms === 'number' && ms >= 0 && ms < 253_402_300_800_000) return Math.floor(ms);
  throw new EventError('invalid', `${label}: at: expected a date or milliseconds since 1970, got ${describe(at)}`);
}

function textOf(value: unknown, label: string): string {
  try {
    return toText(value);
  } catch (error) {
    throw new EventError('invalid', `${label}: expected data that is JSON: ${messageOf(error)}`, { cause: error });
  }
}
