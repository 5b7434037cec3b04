/**
 * The reader of one topic for all subscriptions to callbacks that have seen everything of it: it reads each new event once, asks each
 * of them whether the event is for it, and wakes those for which it is.
 */
import { type Pace, TimeSlice } from '../../../core/kernel/clock.ts';
import type { TopicEvent, TopicPage } from './delivered-topics.ts';
import { type RestingSubscription, RestingSubscriptions } from './resting-subscriptions.ts';

export interface TopicFeedOptions {
  readonly pace: Pace;
  /** The subscriptions of a principal to this topic. */
  of(principal: string): Iterable<RestingSubscription>;
  /** True if a function of the type decides which events a subscription gets. */
  hasMatch(): boolean;
  /** The events and the milliseconds after which subscriptions that wait store their positions: what retention deletes later is then no gap. */
  saves(): { readonly events: number; readonly ms: number };
  /** Reads the events after a number. */
  read(after: number): Promise<TopicPage>;
  /** Calls back when there may be new events. */
  onNews(listener: () => void): () => void;
  failed(error: unknown): void;
  /** Calls back after a while. */
  later(callback: () => void): void;
}

export class TopicFeed {
  readonly #options: TopicFeedOptions;
  readonly #resting = new RestingSubscriptions();
  #stop: () => void;
  #head: number;
  /** The number of the event that is being compared, or was last. */
  #begun: number;
  #saved: number;
  #savedAt: number;
  #epoch: string;
  #looking = false;
  /** There may be more than was read. */
  #news = false;

  /** @param at the position of the first subscription that rests */
  constructor(options: TopicFeedOptions, epoch: string, at: number) {
    this.#options = options;
    this.#epoch = epoch;
    this.#head = at;
    this.#begun = at;
    this.#saved = at;
    this.#savedAt = options.pace.now();
    this.#stop = options.onNews(() => this.look());
  }

  get empty(): boolean {
    return this.#resting.size === 0;
  }

  close(): void {
    this.#stop();
  }

  /** Listens again, and looks whether something was missed. */
  renew(): void {
    this.#stop();
    this.#stop = this.#options.onNews(() => this.look());
    this.look();
    this.#save();
  }

  /** Lets a subscription rest. @returns false if there is more for it to read */
  rest(subscription: RestingSubscription, epoch: string, position: number): boolean {
    if (epoch !== this.#epoch && epoch !== '') this.#begins(epoch);
    if (position < this.#begun) return false;
    this.#resting.add(subscription, position);
    if (this.#resting.size === 1) {
      this.#head = Math.max(this.#head, position);
      // A subscription that has seen less reads the skipped events itself: the feed compares them with nothing.
      this.#begun = Math.max(this.#begun, this.#head);
    }
    // While nothing rested, nothing was read.
    if (this.#news) this.look();
    return true;
  }

  /** The number up to which a resting subscription has seen everything; undefined if it does not rest. */
  positionOf(subscription: RestingSubscription): number | undefined {
    const position = subscription.restsAt;
    return position === undefined ? undefined : Math.max(position, this.#head);
  }

  leave(subscription: RestingSubscription): void {
    this.#resting.delete(subscription);
  }

  /** Looks for new events. */
  look(): void {
    this.#news = true;
    if (this.#looking) return;
    this.#looking = true;
    void this.#lookAll();
  }

  async #lookAll(): Promise<void> {
    while (this.#news && !this.empty) {
      this.#news = false;
      try {
        const page = await this.#options.read(this.#head);
        if (page.epoch !== this.#epoch) this.#begins(page.epoch);
        else if (page.purged > this.#head || page.head < this.#head) this.#wakeAll();
        for (const event of page.events) await this.#compare(event);
        if (page.head > this.#head && page.events.length > 0) this.#news = true;
        this.#save();
      } catch (error) {
        this.#options.failed(error);
        this.#options.later(() => this.look());
        break;
      }
    }
    this.#looking = false;
  }

  /** Starts at a topic that has begun, or has begun again. */
  #begins(epoch: string): void {
    this.#epoch = epoch;
    if (this.#begun === 0) return;
    this.#head = 0;
    this.#begun = 0;
    this.#saved = 0;
    this.#wakeAll();
  }

  /** Wakes each subscription, which reads the topic from its own position. */
  #wakeAll(): void {
    for (const subscription of [...this.#resting.all()]) this.#wake(subscription, subscription.restsAt ?? 0);
  }

  #wake(subscription: RestingSubscription, upto: number): void {
    this.#resting.delete(subscription);
    subscription.wake(upto);
  }

  async #compare(event: TopicEvent): Promise<void> {
    const { pace } = this.#options;
    const { seq } = event;
    this.#begun = seq;
    let slice = new TimeSlice(pace);
    for (const subscription of this.#candidates(event)) {
      if (subscription.restsAt === undefined || subscription.restsAt >= seq) continue;
      if (subscription.wants(event)) this.#wake(subscription, seq - 1);
      if (!slice.over()) continue;
      await new Promise<void>((resolve) => pace.soon(resolve));
      slice = new TimeSlice(pace);
    }
    this.#head = seq;
  }

  #candidates(event: TopicEvent): Iterable<RestingSubscription> {
    const { of, hasMatch } = this.#options;
    if (event.owner !== undefined) return of(event.owner);
    return hasMatch() ? this.#resting.all() : this.#resting.selecting(event);
  }

  #save(): void {
    const { saves, pace } = this.#options;
    const { events, ms } = saves();
    const now = pace.now();
    const [unsaved, age] = [this.#head - this.#saved, now - this.#savedAt];
    if (unsaved === 0 || (unsaved < events && age < ms)) return;
    this.#saved = this.#head;
    this.#savedAt = now;
    for (const subscription of this.#resting.all())
      subscription.advance(Math.max(subscription.restsAt ?? 0, this.#head));
  }
}
