/**
 * The subscriptions to callbacks of a server: holds and stores them, feeds them with the events of their topics, and takes up those
 * of an earlier process.
 */
import type { Timer } from '../../../core/kernel/clock.ts';
import { Groups } from '../../../core/kernel/groups.ts';
import { isExcess, Quota, type Reservation } from '../../../core/kernel/quota.ts';
import { TimerQueue } from '../../../core/kernel/timer-queue.ts';
import type { CellHolder } from '../../../core/messages/cell-holder.ts';
import { isOfCells } from '../../../core/protocol/cell.ts';
import type { EventType } from '../../../core/protocol/types.ts';
import type { Core } from '../../../core/server/feature.ts';
import { toText } from '../../../core/store/serialize.ts';
import type { ActorRow, Write } from '../../../core/store/store.ts';
import { EventCursors } from '../event-cursor.ts';
import { endOfType } from '../event-definition.ts';
import type { EventTopics } from '../event-topics.ts';
import { eventsError, type Termination, typeGone } from '../event-wire.ts';
import type { CallbackPosts } from './callback-posts.ts';
import type { FailureCategory } from './callback-sender.ts';
import type { Verdict } from './delivery-attempts.ts';
import type { DeliveryItem } from './delivery-messages.ts';
import {
  type DeadEvent,
  idOfActor,
  readSubscription,
  type StoredSubscription,
  subscriptionActor,
  writesOfSubscription,
} from './subscription-record.ts';
import { TopicFeed } from './topic-feed.ts';
import { type DeliveryHost, itemOf, matcherOf, spawnDelivery, type WebhookDelivery } from './webhook-delivery.actor.ts';

export interface WebhookSubscriptionsOptions {
  readonly core: Core;
  readonly topics: EventTopics;
  readonly posts: CallbackPosts;
  /** The reason for which its caller may no longer receive events. Never rejects. */
  refusal(record: StoredSubscription): Promise<Termination | 'later' | undefined>;
}

/** Milliseconds between two times at which changes are stored, and the number of changes of one subscription that are stored at once. */
const FLUSH_MS = 1_000;
const MAX_CHANGES = 64;
/** The share of the retention of a topic after which subscriptions that wait store that they have seen everything. */
const SAVED_SHARE = 0.25;
/** Subscriptions of one commit, rows of one read, and rows that are read at once. */
const BATCH = 128;
const PAGE = 1_000;
const LOADED = 64;
/** Characters of the id of a subscription in a log. */
const SHOWN = 12;
/** Milliseconds for which an expired subscription stays in the store, unless a process ends it earlier. */
const KEPT_MS = 60_000;
/** Milliseconds between two looks for types that are gone: a type may be registered again. */
const SWEEP_MS = 60_000;
/** Attempts to tell a receiver that its subscription has ended. */
const FAREWELLS = [0, 1_000, 5_000];

export class WebhookSubscriptions implements CellHolder, DeliveryHost {
  readonly topics: EventTopics;
  readonly system: Core['system'];
  readonly #options: WebhookSubscriptionsOptions;
  readonly #core: Core;
  readonly #quota: Quota;
  readonly #live = new Map<string, WebhookDelivery>();
  readonly #ofPrincipal = new Groups<string, WebhookDelivery>();
  /** By type and value of `by`, with the number of their subscriptions. */
  readonly #feeds = new Map<string, { readonly feed: TopicFeed; users: number }>();
  readonly #timers: TimerQueue;
  /** The subscriptions whose records have changed, with the number of changes. */
  readonly #dirty = new Map<WebhookDelivery, number>();
  /** Those that were taken up and have not begun. */
  readonly #waiting: WebhookDelivery[] = [];
  #flushing: Timer | undefined;
  #flushedAt = Number.NEGATIVE_INFINITY;
  /** The types of subscriptions as they were at the last look. */
  readonly #types = new Map<string, EventType>();
  #looking = false;
  /** The types that were gone at the last look. */
  #gone = new Set<string>();
  #sweep: Timer | undefined;
  #stopped = false;

  constructor(options: WebhookSubscriptionsOptions) {
    const { core } = options;
    const { limits, system } = core;
    this.#options = options;
    this.#core = core;
    this.topics = options.topics;
    this.system = system;
    this.#timers = new TimerQueue(
      system.clock,
      () => system.clock.date(),
      (id) => this.#live.get(id)?.mailbox.send({ type: 'due' }),
    );
    this.#quota = new Quota({
      what: 'webhook subscriptions',
      max: limits.maxWebhooks,
      option: 'limits.maxWebhooks',
      perPrincipal: { max: limits.maxWebhooksPerPrincipal, option: 'limits.maxWebhooksPerPrincipal' },
    });
    const { metrics } = system;
    metrics.gauge(
      'troupe.webhook.subscriptions',
      '{subscription}',
      'Subscriptions to callbacks at this node.',
      () => this.#live.size,
    );
    metrics.gauge('troupe.webhook.suspended', '{subscription}', 'Those whose endpoints are down.', () =>
      this.#count('suspended'),
    );
    metrics.gauge(
      'troupe.webhook.lag',
      's',
      'Seconds since the earliest failure of an endpoint that has not recovered.',
      () => this.#lag(),
    );
  }

  get size(): number {
    return this.#live.size;
  }

  #count(state: string): number {
    let count = 0;
    for (const delivery of this.#live.values()) if (delivery.state() === state) count += 1;
    return count;
  }

  #lag(): number {
    const now = this.system.clock.date();
    let earliest = now;
    for (const { failedSince } of this.#live.values()) earliest = Math.min(earliest, failedSince ?? now);
    return (now - earliest) / 1_000;
  }

  all(): Iterable<WebhookDelivery> {
    return this.#live.values();
  }

  find(id: string): WebhookDelivery | undefined {
    return this.#live.get(id);
  }

  /** True if a principal has a subscription with this callback. */
  hasEndpoint(principal: string, url: string): boolean {
    return [...this.#ofPrincipal.of(principal)].some((delivery) => delivery.url === url);
  }

  /** Takes a place for a new subscription. @returns the limit that is reached */
  reserve(principal: string): Reservation | { readonly max: number; readonly message: string } {
    const reserved = this.#quota.reserve(principal);
    if (!isExcess(reserved)) return reserved;
    const { maxWebhooks, maxWebhooksPerPrincipal } = this.#core.limits;
    this.system.metrics.refused(reserved.option);
    return { max: reserved.limit === 'total' ? maxWebhooks : maxWebhooksPerPrincipal, message: reserved.message };
  }

  /** Stores a new subscription, whose place is reserved, and begins to deliver. @throws {StoreError} */
  async create(record: StoredSubscription): Promise<WebhookDelivery> {
    await this.#core.store.commit(writesOfSubscription(record, KEPT_MS));
    const delivery = this.#hold(record, this.system.clock.date());
    delivery.mailbox.send({ type: 'begin' });
    return delivery;
  }

  /** Stores what its client has changed. @throws {StoreError} */
  async refresh(delivery: WebhookDelivery, record: StoredSubscription): Promise<void> {
    await this.#core.store.commit(writesOfSubscription({ ...record, state: 'live' }, KEPT_MS));
    delivery.mailbox.send({ type: 'refresh', record });
    this.changed(delivery);
  }

  /** Deletes a subscription for its client. @throws {StoreError} */
  async unsubscribe(delivery: WebhookDelivery): Promise<void> {
    delivery.stored = false;
    try {
      await this.#forget(delivery.id);
    } catch (error) {
      delivery.stored = true;
      throw error;
    }
    delivery.mailbox.send({ type: 'end', how: 'unsubscribe', reason: undefined });
  }

  /** Deletes the subscriptions of a principal. @throws {StoreError} */
  async forget(principal: string): Promise<void> {
    for (const delivery of [...this.#ofPrincipal.of(principal)]) await this.unsubscribe(delivery);
  }

  #hold(record: StoredSubscription, checkedAt: number): WebhookDelivery {
    const delivery = spawnDelivery(this, record, checkedAt);
    const { id, principal, name } = record;
    const type = this.topics.known(name)?.type;
    if (type && !this.#types.has(name)) this.#types.set(name, type);
    this.#live.set(id, delivery);
    this.#ofPrincipal.add(principal, delivery);
    this.#sweepLater();
    return delivery;
  }

  #forget(id: string): Promise<void> {
    return this.#core.store.commit([{ type: 'forget', actor: subscriptionActor(id) }]);
  }

  // For its deliveries.

  inFlightOf(name: string): number {
    return this.topics.known(name)?.implementation.inFlight ?? 1;
  }

  feedOf({ name, by, epoch, seq }: StoredSubscription): TopicFeed {
    const key = `${name}\n${by}`;
    const known = this.#feeds.get(key);
    if (known) {
      known.users += 1;
      return known.feed;
    }
    const { clock } = this.system;
    const feed = new TopicFeed(
      {
        pace: clock,
        of: (principal) => this.#of(principal, name, by),
        hasMatch: () => this.topics.known(name)?.implementation.match !== undefined,
        saves: () => {
          const { events = 1, ms = 0 } = this.topics.known(name)?.implementation.retain ?? {};
          return { events: Math.ceil(events * SAVED_SHARE), ms: ms * SAVED_SHARE };
        },
        read: (after) => this.topics.read(name, by, after, PAGE),
        onNews: (listener) => this.topics.onNews(name, by, listener),
        failed: (error) => void this.system.incident(`webhooks of ${name}`, error),
        later: (callback) => void clock.after(FLUSH_MS, callback),
      },
      epoch,
      seq,
    );
    this.#feeds.set(key, { feed, users: 1 });
    return feed;
  }

  *#of(principal: string, name: string, by: string): Iterable<WebhookDelivery> {
    for (const delivery of this.#ofPrincipal.of(principal))
      if (delivery.name === name && delivery.by === by) yield delivery;
  }

  attempt(record: StoredSubscription, { id, body, trace }: DeliveryItem, watermark: number): Promise<Verdict> {
    return this.#options.posts.send(record, {
      id,
      body: toText({ ...body, cursor: this.cursorOf(record, watermark) }),
      trace,
    });
  }

  /** The cursor of a position of a subscription. */
  cursorOf({ principal, name, arguments: given, epoch }: StoredSubscription, seq: number): string {
    return new EventCursors(this.#core.keys.ring, principal, name, given).seal({ epoch, seq });
  }

  refusal(record: StoredSubscription): Promise<Termination | 'later' | undefined> {
    return this.#options.refusal(record);
  }

  changed(delivery: WebhookDelivery): void {
    const changes = (this.#dirty.get(delivery) ?? 0) + 1;
    this.#dirty.set(delivery, changes);
    if (changes >= MAX_CHANGES) void this.#flush([delivery]);
    else this.#flushLater();
  }

  failed(
    { id, url }: StoredSubscription,
    attempt: number,
    waitMs: number | undefined,
    category: FailureCategory,
  ): void {
    if (waitMs === undefined) this.system.metrics.deadLetter();
    const what = `an event of webhook ${id.slice(0, SHOWN)} to ${new URL(url).host}`;
    this.#options.posts.attempts.failed(what, attempt, waitMs, category, 'client');
  }

  /** The dead letters of this node, with their subscriptions. */
  *deadEvents(): Iterable<{ readonly record: StoredSubscription; readonly event: DeadEvent }> {
    for (const { record } of this.#live.values()) for (const event of record.dead ?? []) yield { record, event };
  }

  /**
   * Delivers the event of a dead letter once more, for an operator: now, beside the others and without retries.
   *
   * @returns the category of the failure; `gone` if its topic has it no more, or the subscription is not to get it; undefined if it
   *   was accepted
   * @throws {StoreError}
   */
  async again(id: string, seq: number): Promise<FailureCategory | 'gone' | undefined> {
    const delivery = this.#live.get(id);
    const isDead = delivery?.record.dead?.some((event) => event.seq === seq);
    if (!delivery || !isDead || (await this.refusal(delivery.record))) return 'gone';
    const { record, watermark } = delivery;
    const { epoch, events } = await this.topics.read(record.name, record.by, seq - 1, 1);
    const [event] = events;
    const item =
      epoch === record.epoch && event?.seq === seq
        ? itemOf(record, event, matcherOf(this.topics, record)(event))
        : undefined;
    if (!item) return 'gone';
    const verdict = await this.attempt(record, item, watermark);
    if (verdict.is !== 'accepted') return verdict.category;
    delivery.mailbox.send({ type: 'revived', seq });
    return undefined;
  }

  wakeAt(id: string, date: number | undefined): void {
    if (date === undefined) this.#timers.delete(id);
    else this.#timers.add(id, date);
  }

  ended(delivery: WebhookDelivery, how: 'let go' | StoredSubscription['state'], reason: Termination | undefined): void {
    const { id, record } = delivery;
    this.#live.delete(id);
    this.#dirty.delete(delivery);
    this.#quota.remove(record.principal);
    delivery.actor?.stop(how);
    this.#ofPrincipal.delete(record.principal, delivery);
    this.#leaveFeed(`${record.name}\n${record.by}`);
    if (how === 'let go' || how === 'unsubscribed') return;
    this.#forget(id).catch((error: unknown) => this.system.incident(`webhook ${id}`, error));
    if (reason && record.profile === 'sep') void this.#farewell(record, reason);
  }

  #leaveFeed(key: string): void {
    const found = this.#feeds.get(key);
    if (!found) return;
    found.users -= 1;
    if (found.users > 0) return;
    found.feed.close();
    this.#feeds.delete(key);
  }

  /** Tells a receiver that its subscription is no more. */
  async #farewell(record: StoredSubscription, { failure, message, data }: Termination): Promise<void> {
    const { clock, ids } = this.system;
    const { code } = eventsError(failure, record.profile, message);
    const error = { code, message, ...(data === undefined ? {} : { data }) };
    const post = { id: `msg_terminated_${ids.local()}`, body: toText({ type: 'terminated', error }) };
    for (const ms of FAREWELLS) {
      if (ms > 0) await new Promise<void>((resolve) => void clock.after(ms, resolve));
      if (this.#stopped || (await this.#options.posts.send(record, post)).is === 'accepted') return;
    }
  }

  // The store.

  /** The first change after a pause is stored at once: a process that lives for less than a second makes progress, too. */
  #flushLater(): void {
    const { clock } = this.system;
    this.#flushing ??= clock.after(Math.max(0, this.#flushedAt + FLUSH_MS - clock.now()), () => {
      this.#flushing = undefined;
      this.#flushedAt = clock.now();
      void this.flush();
    });
  }

  /** Stores all changes. Never rejects: what could not be stored is stored later. */
  async flush(only?: (id: string) => boolean): Promise<void> {
    const changed = [...this.#dirty.keys()].filter(({ id }) => only?.(id) ?? true);
    for (let at = 0; at < changed.length; at += BATCH) await this.#flush(changed.slice(at, at + BATCH));
  }

  async #flush(deliveries: readonly WebhookDelivery[]): Promise<void> {
    const writes: Write[] = [];
    for (const delivery of deliveries) {
      this.#dirty.delete(delivery);
      if (delivery.stored) writes.push(...writesOfSubscription(delivery.record, KEPT_MS));
    }
    if (writes.length === 0) return;
    try {
      await this.#core.store.commit(writes);
    } catch (error) {
      this.system.incident('storing the progress of webhooks', error);
      for (const delivery of deliveries)
        if (this.#live.has(delivery.id)) this.#dirty.set(delivery, (this.#dirty.get(delivery) ?? 0) + 1);
      if (!this.#stopped) this.#flushLater();
    }
  }

  async take(cells: readonly number[] | undefined): Promise<void> {
    const { store } = this.#core;
    if (!store.durable) return;
    let after: ActorRow | undefined;
    do {
      const rows: readonly ActorRow[] = await store.list({ kind: 'webhook', cells, after, limit: PAGE });
      for (let at = 0; at < rows.length; at += LOADED)
        await Promise.all(rows.slice(at, at + LOADED).map(({ id }) => this.#load(idOfActor(id))));
      after = rows.length === PAGE ? rows.at(-1) : undefined;
    } while (after);
  }

  async #load(id: string): Promise<void> {
    if (this.#live.has(id)) return;
    try {
      const stored = await this.#core.store.load(subscriptionActor(id));
      if (!stored?.snapshot) return;
      const record = readSubscription(stored.snapshot.data);
      this.#quota.add(record.principal);
      this.#waiting.push(this.#hold(record, 0));
    } catch (error) {
      this.system.incident(`webhook ${id}, which is not delivered`, error);
    }
  }

  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    const isOf = (id: string): boolean => isOfCells(cells, id);
    if (flush) await this.flush(isOf);
    for (const [id, delivery] of [...this.#live]) if (isOf(id)) delivery.mailbox.send({ type: 'let go' });
  }

  /** The server serves: the deliveries that were taken up begin. */
  started(): void {
    for (const delivery of this.#waiting.splice(0)) delivery.mailbox.send({ type: 'begin' });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#flushing?.cancel();
    this.#sweep?.cancel();
    await this.flush();
    for (const delivery of [...this.#live.values()]) delivery.mailbox.send({ type: 'let go' });
    this.#timers.stop();
    this.#options.posts.close();
  }

  /** A type may be another one since, or one that was not there yet: each feed listens again. */
  renewFeeds(): void {
    for (const { feed } of this.#feeds.values()) feed.renew();
  }

  #sweepLater(): void {
    this.#sweep ??= this.system.clock.after(SWEEP_MS, () => {
      this.#sweep = undefined;
      this.#endGone();
      // News between nodes can be lost.
      this.renewFeeds();
      if (this.#live.size > 0) this.#sweepLater();
    });
  }

  /** Looks at the types at the end of the turn: one that is removed and registered again has changed. */
  typesChanged(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.system.clock.soon(() => {
      this.#looking = false;
      this.#endChanged();
      if (!this.#stopped) this.renewFeeds();
    });
  }

  /** Ends the subscriptions of types that this process has had, and that are gone or have other schemas. */
  #endChanged(): void {
    const ends = new Map<string, Termination>();
    for (const [name, before] of this.#types) {
      const now = this.topics.known(name)?.type;
      const end = endOfType(before, now);
      if (end) ends.set(name, end);
      if (now) this.#types.set(name, now);
      else this.#types.delete(name);
    }
    if (ends.size === 0 || this.#stopped) return;
    for (const delivery of [...this.#live.values()]) {
      const reason = ends.get(delivery.name);
      if (reason) delivery.mailbox.send({ type: 'end', how: 'terminate', reason });
    }
  }

  /** Ends the subscriptions of types that are gone for two looks: this process may not have registered them yet. */
  #endGone(): void {
    const gone = new Set<string>();
    for (const delivery of [...this.#live.values()]) {
      const { name } = delivery;
      if (this.topics.known(name)) continue;
      gone.add(name);
      if (!this.#gone.has(name)) continue;
      delivery.mailbox.send({ type: 'end', how: 'terminate', reason: typeGone(name) });
    }
    this.#gone = gone;
  }
}
