/**
 * Delivers the events of one subscription to its callback: in order, each until it is accepted or given up. Governed by
 * `machines/webhook-subscription.ts`. At rest it holds its record only: the feed of its topic wakes it.
 */
import {
  type WebhookSubscriptionEvent,
  webhookSubscriptionMachine,
} from '../../../../machines/webhook-subscription.ts';
import { type Actor, type ActorIdentity, type Behaviour, spawn } from '../../../core/kernel/actor.ts';
import { isoOf } from '../../../core/kernel/clock.ts';
import type { Charted, Facts, Waits } from '../../../core/kernel/inspection/records.ts';
import { randomId } from '../../../core/kernel/random-id.ts';
import { step } from '../../../core/kernel/step.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { JsonObject } from '../../../core/protocol/json.ts';
import type { Core } from '../../../core/server/feature.ts';
import type { EventMatcher } from '../event-topics.ts';
import type { Termination } from '../event-wire.ts';
import type { FailureCategory } from './callback-sender.ts';
import type { DeliveredTopics, TopicEvent, TopicPage } from './delivered-topics.ts';
import { ATTEMPTS_MS, delayAfterFailure, jittered, PROBE_MS, type Verdict } from './delivery-attempts.ts';
import type { DeliveryItem, DeliveryMail } from './delivery-messages.ts';
import type { RestingSubscription, Selected } from './resting-subscriptions.ts';
import type { StoredSubscription } from './subscription-record.ts';
import type { TopicFeed } from './topic-feed.ts';

/** The parts that all deliveries of a server share. */
export interface DeliveryHost {
  readonly system: Core['system'];
  readonly topics: DeliveredTopics;
  /** Number of events of one subscription that are on their way at once. */
  inFlightOf(name: string): number;
  /** The feed of the topic of a subscription, which leaves it when it ends. */
  feedOf(record: StoredSubscription): TopicFeed;
  /** Sends a POST, and finds out what the answer means. Never rejects. */
  attempt(record: StoredSubscription, item: DeliveryItem, watermark: number): Promise<Verdict>;
  /** The reason for which its caller may no longer receive events; undefined if it may. Never rejects. */
  refusal(record: StoredSubscription): Promise<Termination | 'later' | undefined>;
  /** Its record has changed, and is stored soon. */
  changed(delivery: WebhookDelivery): void;
  /** Logs a failed attempt. @param waitMs milliseconds until the next one; undefined: the event is given up */
  failed(record: StoredSubscription, attempt: number, waitMs: number | undefined, category: FailureCategory): void;
  /** Calls back with `due` at a date; undefined: no longer. */
  wakeAt(id: string, date: number | undefined): void;
  /** It has ended, or another process delivers from now on. */
  ended(delivery: WebhookDelivery, how: 'let go' | StoredSubscription['state'], reason: Termination | undefined): void;
}

/** Events of one read. */
const PAGE = 64;
/** Milliseconds between two checks of the rights of a caller. */
const CHECK_MS = 60_000;
/** Milliseconds until a topic that could not be read is read again. */
const READ_AGAIN_MS = 5_000;
/** Attempts of an event that its endpoint rejects. */
const MAX_REJECTIONS = ATTEMPTS_MS.length;
/** Number of dead letters that a subscription keeps. */
const MAX_DEAD = 50;
/** Milliseconds after which a subscription without an expiry ends whose endpoint has accepted nothing. */
const MAX_DOWN_MS = 7 * 86_400_000;

/** The memory of a subscription while it has work. */
interface Work {
  readonly match: EventMatcher;
  /** The events that were read and not begun. */
  page: readonly TopicEvent[];
  next: number;
  /** The newest event when the page was read. */
  head: number;
  reading: boolean;
  checking: boolean;
}

/** Names a delivery. Its label is made when the inspector asks: ten thousand texts are none. */
class DeliveryIdentity implements ActorIdentity {
  readonly address: string;
  readonly #name: string;
  readonly #principal: string;

  constructor({ id, name, principal }: StoredSubscription) {
    this.address = `webhook/${id.slice(0, 12)}`;
    this.#name = name;
    this.#principal = principal;
  }

  get kind() {
    return 'webhook' as const;
  }

  get label(): string {
    return `${this.#name} of ${this.#principal}`;
  }
}

export function spawnDelivery(host: DeliveryHost, record: StoredSubscription, checkedAt: number): WebhookDelivery {
  let delivery: WebhookDelivery | undefined;
  const actor = spawn<DeliveryMail>(new DeliveryIdentity(record), host.system, (self) => {
    delivery = new WebhookDelivery(host, record, self, checkedAt);
    return delivery;
  });
  if (!delivery) throw new Error('expected a delivery that was spawned');
  delivery.actor = actor;
  return delivery;
}

/** The function that decides which events a subscription gets. */
export function matcherOf(topics: DeliveredTopics, record: StoredSubscription): EventMatcher {
  const { principal, auth, name, arguments: given, checked = given } = record;
  return topics.matcher(name, checked, { principal, auth });
}

/** The POST of an event; undefined if the subscription does not get it. */
export function itemOf(
  { name }: StoredSubscription,
  { seq, id, at, trace }: TopicEvent,
  data: JsonObject | undefined,
): DeliveryItem | undefined {
  if (data === undefined) return undefined;
  const meta = trace === undefined ? {} : { _meta: { traceparent: trace } };
  const body = { eventId: id, name, timestamp: isoOf(at), data, ...meta };
  return { of: 'event', seq, id, body, trace, status: 'new', rejections: 0 };
}

export class WebhookDelivery implements Behaviour<DeliveryMail>, RestingSubscription {
  actor: Actor<DeliveryMail> | undefined;
  /** False once it is deleted from the store, or will be: it is not stored again. */
  stored = true;
  restsAt: number | undefined;
  readonly #host: DeliveryHost;
  readonly #feed: TopicFeed;
  readonly #self: Mailbox<DeliveryMail>;
  #record: StoredSubscription;
  #state: ReturnType<typeof webhookSubscriptionMachine.at>;
  /** Every event up to this number was begun, or is not for it. */
  #position: number;
  /** The events that are on their way, the oldest first. */
  #window: DeliveryItem[] = [];
  #work: Work | undefined;
  #checkedAt: number;
  /** The date of the next attempt. */
  #nextAt: number | undefined;
  #retryAfterMs: number | undefined;
  #over = false;

  constructor(host: DeliveryHost, record: StoredSubscription, self: Mailbox<DeliveryMail>, checkedAt: number) {
    this.#host = host;
    this.#feed = host.feedOf(record);
    this.#record = record;
    this.#self = self;
    this.#state = webhookSubscriptionMachine.at(record.state);
    this.#position = record.seq;
    this.#checkedAt = checkedAt;
  }

  get id(): string {
    return this.#record.id;
  }

  get name(): string {
    return this.#record.name;
  }

  get by(): string {
    return this.#record.by;
  }

  get principal(): string {
    return this.#record.principal;
  }

  get url(): string {
    return this.#record.url;
  }

  /** When its endpoint began to fail; undefined if it does not. */
  get failedSince(): number | undefined {
    return this.#record.failedSince;
  }

  get mailbox(): Mailbox<DeliveryMail> {
    return this.#self;
  }

  /** The record as it is to be stored. */
  get record(): StoredSubscription {
    return { ...this.#record, state: this.#state.path, seq: this.watermark };
  }

  /** Every event up to this number was accepted, given up, or is not for it. */
  get watermark(): number {
    const [first] = this.#window;
    if (first) return first.of === 'gap' ? first.seq : first.seq - 1;
    return this.#feed.positionOf(this) ?? this.#position;
  }

  /** The date of the next attempt in milliseconds since 1970, if an earlier one has failed. */
  get nextAt(): number | undefined {
    return this.#nextAt;
  }

  /** Milliseconds until the next attempt, if its endpoint has asked to wait. */
  get throttledMs(): number | undefined {
    return this.#retryAfterMs;
  }

  state(): string {
    return this.#state.path;
  }

  chart(): Charted {
    return this.#state.charted();
  }

  facts(): Facts {
    const { principal, name, url, until, failures, lastError, lastDeliveryAt, dead = [] } = this.#record;
    return {
      ...{ event: name, principal, host: new URL(url).host, 'accepted up to': this.watermark },
      ...{ 'behind by': Math.max(0, (this.#work?.head ?? 0) - this.watermark), 'on their way': this.#window.length },
      ...{ 'last category': lastError, failures, 'next attempt': this.#nextAt && isoOf(this.#nextAt) },
      ...{ 'last accepted': lastDeliveryAt && isoOf(lastDeliveryAt), 'dead letters': dead.length },
      until: until === null ? 'without end' : isoOf(until),
    };
  }

  waits(): readonly Waits[] {
    const host = new URL(this.#record.url).host;
    if (this.#nextAt !== undefined) {
      const { clock } = this.#host.system;
      return [{ what: 'the next attempt', whom: host, until: this.#nextAt - clock.date() + clock.now() }];
    }
    return this.#window.map(({ id }) => ({ what: `the acceptance of ${id}`, whom: host }));
  }

  receive(mail: DeliveryMail): void {
    if (this.#over) return;
    switch (mail.type) {
      case 'begin':
        return this.#begin();
      case 'news':
        this.#position = Math.max(this.#position, mail.upto);
        return this.#pump();
      case 'page':
        return this.#took(mail.page);
      case 'delayed':
        return this.#delayed();
      case 'checked':
        return this.#checked(mail.refusal);
      case 'attempted':
        return this.#attempted(mail.item, mail.verdict);
      case 'due':
        return this.#due();
      case 'revived':
        return this.#revive(mail.seq);
      case 'refresh':
        return this.#refresh(mail.record);
      case 'end':
        return this.#end(mail.how, mail.reason);
      case 'let go':
        return this.#leave('let go', undefined);
    }
  }

  crashed(_mail: DeliveryMail, error: unknown, quarantined: boolean): void {
    if (quarantined) return;
    this.#host.system.incident(this.#self.address, error);
    this.#work = undefined;
    // The events that were on their way are read again.
    this.#position = this.watermark;
    this.#window = [];
    this.#delayed();
  }

  // The feed asks while it rests.

  selects(): Selected | undefined {
    const { arguments: given, checked = given } = this.#record;
    for (const [member, value] of Object.entries(checked))
      if (typeof value === 'string' || typeof value === 'number') return { member, value };
    return undefined;
  }

  wants(event: TopicEvent): boolean {
    return event.gap === true || this.#matcher()(event) !== undefined;
  }

  wake(upto: number): void {
    this.#self.send({ type: 'news', upto });
  }

  advance(upto: number): void {
    this.#position = Math.max(this.#position, upto);
    this.#host.changed(this);
  }

  // Its way.

  #step(type: WebhookSubscriptionEvent['type']): boolean {
    const { inspection } = this.#host.system;
    const next = step(this.#state, { type }, { inspection, actor: this.#self.address });
    if (!next) return false;
    this.#state = next;
    return true;
  }

  #begin(): void {
    if (this.#state.path === 'suspended') this.#nextAt = this.#date() + jittered(PROBE_MS);
    // An earlier process had not sent it.
    if (this.#record.gap) this.#announceGap();
    this.#arm();
    this.#pump();
  }

  #date(): number {
    return this.#host.system.clock.date();
  }

  /** Sets the timer for the next attempt and the end. */
  #arm(): void {
    const dates = [this.#nextAt, this.#record.until ?? undefined].filter((date) => date !== undefined);
    this.#host.wakeAt(this.id, dates.length === 0 ? undefined : Math.min(...dates));
  }

  #due(): void {
    const now = this.#date();
    const { until } = this.#record;
    if (until !== null && now >= until) {
      this.#step('expire');
      return this.#leave(this.#state.path, undefined);
    }
    if (this.#nextAt !== undefined && now >= this.#nextAt) {
      this.#nextAt = undefined;
      this.#retryAfterMs = undefined;
      const [head] = this.#window;
      // The head alone finds out whether the endpoint is back.
      if (head?.status === 'waiting') this.#send(head);
    }
    this.#arm();
    this.#pump();
  }

  #matcher(): EventMatcher {
    return this.#work?.match ?? matcherOf(this.#host.topics, this.#record);
  }

  /** Begins what can begin. */
  #pump(): void {
    if (this.#over || this.#nextAt !== undefined) return;
    this.#work ??= { match: this.#matcher(), page: [], next: 0, head: 0, reading: false, checking: false };
    const work = this.#work;
    if (work.reading || work.checking) return;
    if (this.#date() - this.#checkedAt >= CHECK_MS) {
      work.checking = true;
      void this.#host.refusal(this.#record).then((refusal) => this.#self.send({ type: 'checked', refusal }));
      return;
    }
    for (const item of this.#window) if (item.status === 'new' || this.#isResent(item)) this.#send(item);
    const most = this.#host.inFlightOf(this.#record.name);
    while (this.#window.length < most && this.#canBegin()) {
      const event = work.page[work.next];
      if (!event) return this.#read();
      work.next += 1;
      this.#position = event.seq;
      if (event.gap) {
        this.#passGap();
        return this.#pump();
      }
      const item = itemOf(this.#record, event, work.match(event));
      if (item) this.#enter(item);
    }
  }

  /** While the endpoint fails, nothing more is begun than what finds out whether it is back. */
  #canBegin(): boolean {
    return this.#state.path === 'live' || this.#window.length === 0;
  }

  #isResent(item: DeliveryItem): boolean {
    return item.status === 'waiting' && this.#state.path === 'live';
  }

  #enter(item: DeliveryItem): void {
    this.#window.push(item);
    this.#send(item);
  }

  #send(item: DeliveryItem): void {
    item.status = 'sending';
    void this.#host
      .attempt(this.#record, item, this.watermark)
      .then((verdict) => this.#self.send({ type: 'attempted', item, verdict }));
  }

  #read(): void {
    const work = this.#work;
    if (!work) return;
    if (work.head > 0 && this.#position >= work.head && this.#rest()) return;
    work.reading = true;
    const { name, by } = this.#record;
    this.#host.topics.read(name, by, this.#position, PAGE).then(
      (page) => this.#self.send({ type: 'page', page }),
      (error: unknown) => {
        this.#host.system.incident(this.#self.address, error);
        this.#self.send({ type: 'delayed' });
      },
    );
  }

  /** Waits for news. @returns false if there is something to do, or to read */
  #rest(): boolean {
    if (this.#window.length > 0) return true;
    if (!this.#feed.rest(this, this.#record.epoch, this.#position)) return false;
    this.#work = undefined;
    return true;
  }

  #took(page: TopicPage): void {
    const work = this.#work;
    if (!work) return;
    work.reading = false;
    work.page = page.events;
    work.next = 0;
    work.head = page.head;
    // Before its first event, a topic in a durable store has no epoch: a subscription of that time has missed nothing.
    const isOther = page.epoch !== this.#record.epoch && this.#record.epoch !== '' && this.#position > 0;
    if (page.epoch !== this.#record.epoch && !isOther) this.#record = { ...this.#record, epoch: page.epoch };
    if (isOther || page.purged > this.#position || page.head < this.#position) this.#skip(page, isOther);
    if (page.events.length === 0) this.#position = Math.max(this.#position, page.head);
    if (page.events.length === 0 && this.#rest()) return;
    this.#pump();
  }

  /** Events were deleted before they were delivered. */
  #skip({ epoch, purged, head }: TopicPage, isOther: boolean): void {
    this.#position = isOther || head < this.#position ? purged : Math.max(this.#position, purged);
    this.#record = { ...this.#record, epoch };
    this.#passGap();
  }

  #passGap(): void {
    this.#record = { ...this.#record, gap: true };
    this.#host.changed(this);
    this.#announceGap();
  }

  /** A client of the extension learns of a gap now, any other when it subscribes again. */
  #announceGap(): void {
    if (this.#record.profile !== 'sep' || this.#window.some(({ of }) => of === 'gap')) return;
    const id = `msg_gap_${randomId()}`;
    this.#window.push({ of: 'gap', seq: this.#position, id, body: { type: 'gap' }, status: 'new', rejections: 0 });
  }

  #delayed(): void {
    if (this.#work) {
      this.#work.reading = false;
      this.#work.checking = false;
    }
    this.#nextAt = this.#date() + READ_AGAIN_MS;
    this.#arm();
  }

  #checked(refusal: Termination | 'later' | undefined): void {
    if (this.#work) this.#work.checking = false;
    if (refusal === 'later') return this.#delayed();
    if (refusal) return this.#end('terminate', refusal);
    this.#checkedAt = this.#date();
    this.#pump();
  }

  #attempted(item: DeliveryItem, verdict: Verdict): void {
    const index = this.#window.indexOf(item);
    if (index < 0) return;
    const now = this.#date();
    if (verdict.is === 'accepted') {
      this.#window.splice(index, 1);
      this.#step('accepted');
      const { failures: _, failedSince: __, ...rest } = this.#record;
      this.#record = { ...rest, lastDeliveryAt: now, ...(item.of === 'gap' ? { gap: false } : {}) };
      this.#nextAt = undefined;
      this.#retryAfterMs = undefined;
      this.#host.changed(this);
      this.#arm();
      return this.#pump();
    }
    item.rejections += verdict.is === 'rejected' ? 1 : 0;
    const { category } = verdict;
    this.#record = { ...this.#record, lastError: category, failedSince: this.#record.failedSince ?? now };
    if (verdict.is === 'declined' || item.rejections >= MAX_REJECTIONS) return this.#giveUp(item, index, verdict);
    item.status = 'waiting';
    // Several events in flight fail together, which is one failure of their endpoint.
    if (this.#nextAt === undefined) this.#failed(item, verdict, now);
    this.#host.changed(this);
    this.#arm();
  }

  #failed(item: DeliveryItem, verdict: Exclude<Verdict, { is: 'accepted' }>, now: number): void {
    const failures = (this.#record.failures ?? 0) + 1;
    this.#record = { ...this.#record, failures };
    this.#retryAfterMs = verdict.is === 'down' ? verdict.retryAfterMs : undefined;
    const delay = delayAfterFailure(verdict.is === 'rejected' ? item.rejections : failures, this.#retryAfterMs);
    this.#host.failed(this.#record, failures, delay ?? PROBE_MS, verdict.category);
    if (delay === undefined || this.#state.path === 'suspended') {
      this.#step('suspend');
      if (this.#record.until === null && now - (this.#record.failedSince ?? now) > MAX_DOWN_MS)
        return this.#end('terminate', {
          failure: 'callback',
          message: 'the endpoint has accepted nothing for seven days',
        });
      this.#nextAt = now + Math.max(this.#retryAfterMs ?? 0, jittered(PROBE_MS));
      return;
    }
    this.#step('fail');
    this.#nextAt = now + delay;
  }

  #giveUp(item: DeliveryItem, index: number, verdict: Exclude<Verdict, { is: 'accepted' }>): void {
    this.#window.splice(index, 1);
    this.#step('give up');
    const { failures: _, ...rest } = this.#record;
    this.#record = rest;
    this.#nextAt = undefined;
    if (item.of === 'event') {
      // The receiver has chosen not to have a declined one.
      if (verdict.is === 'rejected') {
        this.#record = { ...this.#record, gap: true };
        this.#announceGap();
      }
      this.#bury(item, verdict);
    } else this.#record = { ...this.#record, gap: false };
    this.#host.changed(this);
    this.#arm();
    this.#pump();
  }

  #bury({ seq, id, rejections }: DeliveryItem, { is, category }: Exclude<Verdict, { is: 'accepted' }>): void {
    const attempts = rejections + (is === 'declined' ? 1 : 0);
    this.#host.failed(this.#record, attempts, undefined, category);
    const dead = [...(this.#record.dead ?? []), { seq, id, at: this.#date(), attempts, category }];
    this.#record = { ...this.#record, dead: dead.slice(-MAX_DEAD) };
  }

  /** A dead letter was delivered after all. */
  #revive(seq: number): void {
    const dead = this.#record.dead?.filter((event) => event.seq !== seq);
    this.#record = { ...this.#record, dead: dead?.length ? dead : undefined };
    this.#host.changed(this);
  }

  /** Its client has subscribed again: the record has the members that it may change. */
  #refresh(record: StoredSubscription): void {
    const { secrets, auth, until, profile, checked } = record;
    const { failures: _, ...rest } = this.#record;
    const position = this.restsAt === undefined ? undefined : this.watermark;
    this.#feed.leave(this);
    this.#record = { ...rest, secrets, auth, until, profile, checked, gap: false };
    if (position !== undefined) this.#feed.rest(this, rest.epoch, position);
    this.#checkedAt = this.#date();
    const isWaiting = this.#nextAt !== undefined;
    this.#step('refresh');
    if (this.#work) this.#work = { ...this.#work, match: matcherOf(this.#host.topics, this.#record) };
    this.#nextAt = undefined;
    this.#retryAfterMs = undefined;
    this.#arm();
    if (isWaiting) this.#pump();
  }

  #end(how: 'unsubscribe' | 'terminate', reason: Termination | undefined): void {
    this.#step(how);
    this.#leave(this.#state.path, reason);
  }

  #leave(how: 'let go' | StoredSubscription['state'], reason: Termination | undefined): void {
    if (this.#over) return;
    const { record } = this;
    this.#feed.leave(this);
    this.#host.wakeAt(this.id, undefined);
    this.#over = true;
    this.#record = record;
    this.#host.ended(this, how, reason);
  }
}
