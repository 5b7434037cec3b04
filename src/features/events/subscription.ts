/**
 * One subscription to events, whatever delivers it: the topic of its arguments, its position, and the events after it that its
 * subscriber gets.
 */
import { isoOf } from '../../core/kernel/clock.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { explain } from '../../core/schema/problems.ts';
import type { KeyRing } from '../../core/store/seal.ts';
import { EventCursors, type EventPosition } from './event-cursor.ts';
import { type EventSubscriber, topicOf } from './event-definition.ts';
import type { EventMatcher, EventTopics, KnownEvent } from './event-topics.ts';
import type { Occurrence } from './event-wire.ts';
import type { TopicEvent } from './topic-document.ts';

/** Events that are read for one batch. Those that do not match cost as much as those that do. */
const SCANNED = 1_000;

export interface SubscriptionRequest {
  readonly name: string;
  readonly arguments: JsonObject;
  /** Undefined: from now. */
  readonly cursor: string | undefined;
  readonly maxAgeMs: number | undefined;
}

/** Events that a subscriber gets, and the position after them. */
export interface EventBatch {
  readonly events: readonly { readonly event: TopicEvent; readonly data: JsonObject }[];
  readonly position: EventPosition;
  /** The position before them: after the gap, if there is one. */
  readonly from: EventPosition;
  /** Events before these are gone. */
  readonly truncated: boolean;
  /** The topic has more events after the position. */
  readonly hasMore: boolean;
  /** When the newest event of the topic happened, if this batch has reached it. */
  readonly newestAt: number | undefined;
}

export class EventSubscription {
  readonly known: KnownEvent;
  readonly by: string;
  readonly cursors: EventCursors;
  readonly #topics: EventTopics;
  readonly #args: JsonObject;
  readonly #who: EventSubscriber;
  #matcher: { readonly ref: number | undefined; readonly matches: EventMatcher } | undefined;
  readonly #since: number;

  /** @param args the checked arguments */
  constructor(
    topics: EventTopics,
    ring: KeyRing,
    known: KnownEvent,
    asked: SubscriptionRequest,
    args: JsonObject,
    who: EventSubscriber,
    now: number,
  ) {
    this.#topics = topics;
    this.known = known;
    this.by = topicOf(known.implementation, args, asked.arguments, who.principal);
    this.cursors = new EventCursors(ring, who.principal, asked.name, asked.arguments);
    this.#args = args;
    this.#who = who;
    this.#since = asked.maxAgeMs === undefined ? Number.NEGATIVE_INFINITY : now - asked.maxAgeMs;
  }

  /** The position now: everything before it is not sent. */
  async head(): Promise<EventPosition> {
    const { epoch, head } = await this.#topics.read(this.known.type.name, this.by, Number.MAX_SAFE_INTEGER, 0);
    return { epoch, seq: head };
  }

  /**
   * Reads the events after a position.
   *
   * @param after undefined: a cursor that this server has not sealed
   * @param limit maximum number of events
   */
  async read(after: EventPosition | undefined, limit: number): Promise<EventBatch> {
    const { name } = this.known.type;
    const page = await this.#topics.read(name, this.by, after?.seq ?? Number.MAX_SAFE_INTEGER, SCANNED);
    const { epoch, head, purged } = page;
    // The topic was deleted and has begun again: everything in it is new.
    if (after && after.epoch !== epoch && after.epoch !== '')
      return { ...(await this.read({ epoch, seq: 0 }, limit)), truncated: true };
    if (!after || after.seq > head) {
      const position = { epoch, seq: head };
      return { events: [], position, from: position, truncated: true, hasMore: false, newestAt: undefined };
    }
    const matches = this.#matches();
    const events: { event: TopicEvent; data: JsonObject }[] = [];
    let seq = Math.max(after.seq, purged);
    let truncated = after.seq < purged;
    let from = seq;
    for (const event of page.events) {
      // The events before a gap are a batch of their own.
      if (event.gap && events.length > 0) break;
      if (event.gap) {
        truncated = true;
        from = event.seq;
      }
      const data = event.at < this.#since ? undefined : matches(event);
      if (data !== undefined) {
        if (events.length >= limit) break;
        events.push({ event, data });
      }
      seq = event.seq;
    }
    return {
      events,
      position: { epoch, seq },
      from: { epoch, seq: from },
      truncated,
      hasMore: seq < head,
      newestAt: seq === head ? page.events.at(-1)?.at : undefined,
    };
  }

  /** The functions of the definition that is registered now. */
  #matches(): EventMatcher {
    const { name } = this.known.type;
    const ref = this.#topics.known(name)?.ref;
    if (this.#matcher?.ref !== ref || !this.#matcher)
      this.#matcher = { ref, matches: this.#topics.matcher(name, this.#args, this.#who) };
    return this.#matcher.matches;
  }

  /** An event as clients see it. @param cursor the position after it */
  occurrence({ id, at, trace }: TopicEvent, data: JsonObject, cursor?: string): Occurrence {
    return {
      eventId: id,
      name: this.known.type.name,
      timestamp: isoOf(at),
      data,
      ...(cursor === undefined ? {} : { cursor }),
      ...(trace === undefined ? {} : { _meta: { traceparent: trace } }),
    };
  }
}

/** Checks the arguments of a subscription. @throws {ProtocolError} -32602 */
export async function checkedArguments({ type, implementation }: KnownEvent, args: JsonObject): Promise<JsonObject> {
  const checked = await implementation.input.check(args);
  if (!checked.ok)
    throw new ProtocolError(
      ErrorCode.InvalidParams,
      `params.arguments: ${explain(checked.problems, `arguments for event "${type.name}"`)}`,
    );
  return isJsonObject(checked.value) ? checked.value : {};
}
