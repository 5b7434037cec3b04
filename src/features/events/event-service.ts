/** Serves the methods of events: lists types, answers polls, and opens streams. */

import { Lazy } from '../../core/kernel/lazy.ts';
import type { RequestMail, RequestTarget } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { ErrorCode, type ErrorCodeValue, ProtocolError, toWireError } from '../../core/protocol/errors.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { EventsRead } from '../../core/protocol/operations.ts';
import type { EventType } from '../../core/protocol/types.ts';
import { checkOptionsOf } from '../../core/registry/definition-checks.ts';
import { spawnRegistry } from '../../core/registry/registry.actor.ts';
import { misrouted, respond } from '../../core/requests/active-request.ts';
import type { Core } from '../../core/server/feature.ts';
import { EventWebhooks, takesWebhooks } from './delivery/event-webhooks.ts';
import type { PlacedSubscribers } from './delivery/placed-subscribers.ts';
import type { EventPosition } from './event-cursor.ts';
import type { AnyEventType } from './event-definition.ts';
import { type EventJudge, EventStreams } from './event-streams.ts';
import { EventTopics, type KnownEvent, type RegisteredEvent } from './event-topics.ts';
import { codesOf, type EventsProfile, eventsError, type PollResult, recoded } from './event-wire.ts';
import { checkedArguments, EventSubscription } from './subscription.ts';

/** Events of one poll, unless the client wants fewer. */
const MOST_POLLED = 200;
/** Milliseconds between two polls: the tenth part of the age of the last event, within these bounds. */
const POLL_MS = [1_000, 30_000] as const;

export interface EventRights {
  judgeEvent: EventJudge;
}

export class EventService implements RequestTarget {
  readonly topics: EventTopics;
  readonly streams: EventStreams;
  /** Opens with the first subscription of a webhook. */
  readonly webhooks: Lazy<EventWebhooks>;
  readonly #core: Core;
  readonly #registry: RequestTarget;
  readonly #placed: PlacedSubscribers;
  /** The topics of the server that has adopted the types. */
  #emitter: Pick<EventTopics, 'emit'> | undefined;

  /**
   * @param shared true if other nodes share the store
   * @param placed finds the node that serves a subscriber
   */
  constructor(core: Core, shared: boolean, placed: PlacedSubscribers, rights: () => EventRights) {
    this.#core = core;
    this.#placed = placed;
    const { metrics } = core.system;
    const emitted = metrics.counter('troupe.events', '{event}', 'Events emitted, by type.', 'event');
    metrics.gauge('troupe.event.streams', '{stream}', 'Open streams of events.', () => this.streams.size);
    const registry = spawnRegistry<EventType>({
      ...{ system: core.system, address: 'registry/events', catalogue: core.elements.catalogues.events },
      serve: (request) => this.#serve(request),
      changed: () => {
        core.changes.send({ type: 'list changed', what: 'events' });
        this.streams.typesChanged();
        this.webhooks.created?.subscriptions.typesChanged();
      },
    }).mailbox;
    this.#registry = registry;
    this.topics = new EventTopics(core, shared, registry, emitted);
    const judge: EventJudge = (request, name, args) => rights().judgeEvent(request, name, args);
    this.streams = new EventStreams({ core, topics: this.topics, judge });
    this.webhooks = new Lazy(() => new EventWebhooks(core, this.topics, judge));
  }

  /** Offers the types of a program, whose events are emitted here from now on: for `troupe dev`. */
  adopt(program: EventService | undefined): void {
    this.topics.events.replaceSource('program', program?.topics.events.definitions() ?? []);
    program?.emitTo(this.topics);
  }

  /** Emits the events of this program's types elsewhere. */
  emitTo(topics: Pick<EventTopics, 'emit'>): void {
    this.#emitter = topics;
  }

  /** @param open opens the store, which a program may use before it listens */
  register<Data>(name: string, options: object, open: () => Promise<unknown>): RegisteredEvent<Data> {
    checkOptionsOf(`event "${name}"`, options);
    // The check of the definition decides whether these are its options.
    const { remove } = this.topics.events.register({ ...options, name } as AnyEventType);
    return {
      name,
      remove,
      emit: async (data, options) => {
        // The server that has adopted the types is open.
        if (!this.#emitter) await open();
        return (this.#emitter ?? this.topics).emit(name, data, options);
      },
    };
  }

  send(mail: RequestMail): void {
    this.#registry.send(mail);
  }

  #serve(request: RequestView): void {
    const { operation } = request;
    switch (operation.method) {
      case 'events/list':
        return respond(request, {
          ok: true,
          result: { kind: 'object', result: this.#list(request, operation.cursor) },
        });
      case 'events/poll':
        return this.#answer(request, this.#poll(request, operation));
      case 'events/stream':
        return this.#answer(request, this.#stream(request, operation));
      case 'events/subscribe':
      case 'events/unsubscribe':
        return this.#answer(request, this.#placed.serve(request, operation));
      default:
        throw misrouted(request, 'the events');
    }
  }

  /** Responds with a result, unless there is none: a stream is open. */
  #answer(request: RequestView, result: Promise<JsonObject | undefined>): void {
    result.then(
      (found) => found && respond(request, { ok: true, result: { kind: 'object', result: found } }),
      (error: unknown) => {
        const isMeant = error instanceof ProtocolError;
        const incident = isMeant ? '' : this.#core.system.incident('events', error);
        const thrown = isMeant ? recoded(error, this.#codes(request)) : error;
        // In the design sketch, ending what has ended is no error.
        const isEnded = request.operation.method === 'events/unsubscribe' && isCode(thrown, ErrorCode.SketchNotFound);
        if (isEnded) respond(request, { ok: true, result: { kind: 'object', result: {} } });
        else respond(request, { ok: false, error: toWireError(thrown, incident) });
      },
    );
  }

  /** The profile whose codes a request gets. */
  #codes({ client }: RequestView): EventsProfile {
    return codesOf(client.capabilities, this.#core.options.events?.codes);
  }

  #list({ view, client }: RequestView, cursor: string | undefined): JsonObject {
    const { catalogues } = this.#core.elements;
    const { items, nextCursor } = catalogues.events.slice(cursor, this.#core.limits.pageSize, isEvent, view);
    // A stream is a request that stays open, which a session has not.
    const isMissing = {
      poll: false,
      push: client.dialect.era !== 'modern',
      webhook: !takesWebhooks(this.#core.options.events, client.principal),
    };
    const events = items.map((type) => ({ ...type, delivery: type.delivery.filter((mode) => !isMissing[mode]) }));
    return { events, ...(nextCursor === undefined ? {} : { nextCursor }) };
  }

  async #poll(request: RequestView, operation: EventsRead): Promise<JsonObject> {
    const { subscription, cursor } = await this.#subscription(request, operation);
    if (cursor === 'now') {
      const position = await subscription.head();
      return result({
        events: [],
        cursor: subscription.cursors.seal(position),
        truncated: false,
        hasMore: false,
        nextPollMs: POLL_MS[0],
      });
    }
    const most = Math.min(operation.maxEvents ?? MOST_POLLED, MOST_POLLED);
    const { events, position, truncated, hasMore, newestAt } = await subscription.read(cursor, most);
    const age = newestAt === undefined ? 0 : this.#core.system.clock.date() - newestAt;
    const idle = events.length === 0 && newestAt === undefined;
    const [least, longest] = POLL_MS;
    return result({
      events: events.map(({ event, data }) => subscription.occurrence(event, data)),
      cursor: subscription.cursors.seal(position),
      truncated,
      hasMore,
      nextPollMs: idle ? 5 * least : Math.min(longest, Math.max(least, Math.floor(age / 10))),
    });
  }

  async #stream(request: RequestView, operation: EventsRead): Promise<undefined> {
    if (request.exchange?.streams === false)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        'Accept: expected text/event-stream for events/stream, which is answered with a stream; got a header that excludes it',
      );
    const { subscription, cursor } = await this.#subscription(request, operation);
    // Its client may have left meanwhile.
    if (!request.settled) await this.streams.open(request, subscription, operation.name, operation.arguments, cursor);
    return undefined;
  }

  async #subscription(
    request: RequestView,
    operation: EventsRead,
  ): Promise<{ readonly subscription: EventSubscription; readonly cursor: EventPosition | undefined | 'now' }> {
    const known = this.known(request, operation.name);
    const args = await checkedArguments(known, operation.arguments);
    const { principal } = request.client;
    const fromNow = operation.cursor === undefined;
    await known.implementation.source?.feed({ arguments: operation.arguments, principal, fromNow });
    const subscription = new EventSubscription(
      this.topics,
      this.#core.keys.ring,
      known,
      operation,
      args,
      { principal, auth: request.auth },
      this.#core.system.clock.date(),
    );
    return {
      subscription,
      cursor: operation.cursor === undefined ? 'now' : subscription.cursors.open(operation.cursor),
    };
  }

  /** The type of a request. A hidden one counts as unknown. @throws {ProtocolError} */
  known(request: RequestView, name: string): KnownEvent {
    const known = request.hidden ? undefined : this.topics.known(name);
    if (known) return known;
    throw eventsError('not found', this.#codes(request), `Unknown event: ${name.slice(0, 128)}`, { kind: 'event' });
  }
}

const isEvent = (_: EventType): _ is EventType => true;

function result({ events, ...rest }: PollResult): JsonObject {
  return { ...rest, events: events.map((event) => ({ ...event })) };
}

function isCode(error: unknown, code: ErrorCodeValue): boolean {
  return error instanceof ProtocolError && error.code === code;
}
