/**
 * The subscriptions that wait for the next event of a topic, found by the events that they may want: those that name a member and its
 * value are compared with no other event.
 */
import { Groups } from '../../../core/kernel/groups.ts';
import type { TopicEvent } from './delivered-topics.ts';

/** A subscription that waits for the next event. */
export interface RestingSubscription {
  readonly principal: string;
  /** The number up to which it has seen everything when it began to rest; undefined while it does not. Its feed sets it. */
  restsAt: number | undefined;
  /** One of its arguments; undefined: it has none. It stays the same while it rests. */
  selects(): Selected | undefined;
  wants(event: TopicEvent): boolean;
  /** An event may be for it: everything up to `upto` is not. */
  wake(upto: number): void;
  /** Everything up to the head of the feed is not for it, and that should be stored. */
  advance(upto: number): void;
}

/** A member of the data of events, and the value that it has in those that a subscription wants, if its type has no `match`. */
export interface Selected {
  readonly member: string;
  readonly value: string | number;
}

export class RestingSubscriptions {
  /** Those without such an argument. */
  readonly #any = new Set<RestingSubscription>();
  /** By member and value. */
  readonly #selecting = new Map<string, Groups<string | number, RestingSubscription>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(subscription: RestingSubscription, at: number): void {
    if (subscription.restsAt === undefined) this.#size += 1;
    subscription.restsAt = at;
    const selected = subscription.selects();
    if (!selected) return void this.#any.add(subscription);
    const { member, value } = selected;
    const groups = this.#selecting.get(member) ?? new Groups<string | number, RestingSubscription>();
    this.#selecting.set(member, groups);
    groups.add(value, subscription);
  }

  delete(subscription: RestingSubscription): void {
    if (subscription.restsAt === undefined) return;
    subscription.restsAt = undefined;
    this.#size -= 1;
    const selected = subscription.selects();
    if (!selected) return void this.#any.delete(subscription);
    const { member, value } = selected;
    const groups = this.#selecting.get(member);
    groups?.delete(value, subscription);
    if (groups?.size === 0) this.#selecting.delete(member);
  }

  /** All of them. One that rests again meanwhile may come again. */
  *all(): Iterable<RestingSubscription> {
    yield* this.#any;
    for (const groups of this.#selecting.values()) yield* groups.all();
  }

  /** Those that may want this event of a type without `match`. */
  *selecting({ data }: Pick<TopicEvent, 'data'>): Iterable<RestingSubscription> {
    yield* this.#any;
    for (const [member, groups] of this.#selecting) {
      const value = data[member];
      if (typeof value === 'string' || typeof value === 'number') yield* groups.of(value);
    }
  }
}
