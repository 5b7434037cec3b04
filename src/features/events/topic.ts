/**
 * One topic: the events of a type, or of a type and one value of its member `by`, in one order. Each process appends with a
 * compare-and-swap of the head, so that every node may emit (docs/adr/0083).
 */
import { randomInt } from 'node:crypto';
import { delayAfter } from '../../core/kernel/back-off.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { type ActorRow, type Store, StoreError } from '../../core/store/store.ts';
import { EventError } from './event-error.ts';
import type { PartCache } from './part-cache.ts';
import {
  appendEvents,
  closePart,
  commitEvent,
  isFull,
  NEW_TOPIC,
  type NewEvent,
  partText,
  purgedOf,
  type Retention,
  readHead,
  readPart,
  type TopicEvent,
  type TopicHead,
  type TopicPart,
  topicText,
} from './topic-document.ts';

export interface TopicOptions {
  readonly name: string;
  /** The value of the member `by`; the empty string for a type without one. */
  readonly by: string;
  readonly store: Store;
  readonly clock: Clock;
  retain: Retention;
  readonly parts: PartCache;
  /** The epoch before the first event: that of the process, or the empty string if the store outlives it. */
  readonly epoch: string;
  /** True if other processes append to it, too. */
  readonly shared: boolean;
  /** Called before a topic is created. @throws {EventError} `limit` */
  admit(): Promise<void>;
  /** Called after a commit. */
  committed(topic: Topic, events: readonly TopicEvent[]): void;
}

/** A page of a topic. */
export interface TopicPage {
  readonly epoch: string;
  readonly events: readonly TopicEvent[];
  /** The newest event of the topic. */
  readonly head: number;
  /** The newest event that was deleted: a reader that has seen less has a gap. */
  readonly purged: number;
}

interface Waiting {
  readonly event: NewEvent;
  readonly bytes: number;
  resolve(event: TopicEvent): void;
  reject(error: unknown): void;
}

interface KnownHead {
  readonly head: TopicHead;
  /** The version of the stored snapshot; undefined if the store has none. */
  readonly version: string | undefined;
  readonly created: number;
}

/** Maximum number of events, and of their bytes, that wait for one topic. */
const MAX_WAITING = 10_000;
const MAX_WAITING_BYTES = 16 * 1024 ** 2;
/** Maximum number of events of one commit, and of their bytes. */
const MAX_BATCH = 256;
const MAX_BATCH_BYTES = 1024 ** 2;
/** Attempts to commit while other nodes append. */
const ATTEMPTS = 32;
const BACK_OFF = { fromMs: 1, toMs: 64 };
/** Bytes of a page of events, except for a single event with more. */
const PAGE_BYTES = 1024 ** 2;
/** Maximum number of ids that are recognized when they come again. */
const MAX_IDS = 10_000;
/** Milliseconds for which a topic without new events stays in the store, at least: its cursors stay valid. */
const HEAD_MS = 30 * 86_400_000;
/** Milliseconds for which a part stays in the store after its retention: a reader may have begun. */
const PART_SLACK_MS = 60_000;

export class Topic {
  readonly id: string;
  readonly name: string;
  readonly by: string;
  readonly #options: TopicOptions;
  readonly #listeners = new Set<(events: readonly TopicEvent[]) => void>();
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #appending = false;
  #known: KnownHead | undefined;
  #loading: Promise<KnownHead> | undefined;
  #nextLoad: Promise<KnownHead> | undefined;
  /** The numbers of the latest events by their ids, from this number on; undefined until an id is looked for. */
  #ids: Map<string, number> | undefined;
  /** When it was last used, by the monotonic clock. */
  usedAt = 0;

  constructor(options: TopicOptions) {
    this.#options = { ...options };
    this.name = options.name;
    this.by = options.by;
    this.id = topicId(options.name, options.by);
    this.usedAt = options.clock.now();
  }

  /** A later definition of its type may have another retention. */
  set retain(retain: Retention) {
    this.#options.retain = retain;
  }

  /** The newest event, as far as this process knows; undefined before the topic was read. */
  get lastKnown(): TopicHead | undefined {
    return this.#known?.head;
  }

  /** True while something waits for it or listens. */
  get busy(): boolean {
    return this.#appending || this.#listeners.size > 0;
  }

  /**
   * Appends an event. An id that the topic has already appends nothing.
   *
   * @param explicit the id was given, and may come again
   * @returns the committed event, once it is durable
   * @throws {EventError}
   */
  append(event: NewEvent, explicit: boolean): Promise<TopicEvent> {
    this.usedAt = this.#options.clock.now();
    const bytes = event.text.length;
    if (this.#waiting.length >= MAX_WAITING || this.#waitingBytes + bytes > MAX_WAITING_BYTES)
      throw new EventError(
        'busy',
        `event "${this.name}": ${this.#waiting.length} events wait for the store. Await each emit, and retry this one later`,
      );
    if (explicit) this.#ids ??= new Map();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ event, bytes, resolve, reject });
      this.#waitingBytes += bytes;
      if (!this.#appending) void this.#appendAll();
    });
  }

  /**
   * Reads the events after a number, at most `limit` and a mebibyte.
   *
   * @throws {StoreError}
   */
  async read(after: number, limit: number): Promise<TopicPage> {
    const { clock, retain, shared } = this.#options;
    this.usedAt = clock.now();
    // Twice: another process may delete a part that an older head names.
    for (let attempt = 0; ; attempt += 1) {
      const { head } = await (shared && !this.#appending ? this.#load() : this.#head());
      const purged = purgedOf(head, retain, clock.date());
      try {
        const events = await this.#eventsAfter(head, Math.max(after, purged), limit);
        return { epoch: head.epoch, events, head: head.last, purged };
      } catch (error) {
        if (attempt > 0 || !(error instanceof StoreError) || error.fault !== 'purged') throw error;
        this.#known = undefined;
      }
    }
  }

  /** Calls back with new events of this process, and with none when another process may have appended some. */
  onNews(listener: (events: readonly TopicEvent[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @param events none: another process has committed some */
  announce(events: readonly TopicEvent[]): void {
    for (const listener of this.#listeners) listener(events);
  }

  async #appendAll(): Promise<void> {
    this.#appending = true;
    while (this.#waiting.length > 0) {
      const batch = this.#take();
      try {
        await this.#commit(batch);
      } catch (error) {
        // It is unknown what the store has.
        this.#known = undefined;
        const failure = this.#failureOf(error);
        for (const { reject } of batch) reject(failure);
      }
    }
    this.#appending = false;
  }

  #take(): readonly Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const each of this.#waiting) {
      if (count > 0 && (count >= MAX_BATCH || bytes + each.bytes > MAX_BATCH_BYTES)) break;
      bytes += each.bytes;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const { clock, store, retain } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const known = await this.#head();
      if (known.version === undefined) await this.#options.admit();
      if (this.#ids) await this.#indexIds(known.head);
      let head = known.head.epoch === '' ? { ...known.head, epoch: randomId(8) } : known.head;
      if (isFull(head)) {
        await this.#storePart(head);
        head = closePart(head);
      }
      const now = clock.date();
      const fresh = new Map<string, TopicEvent>();
      const earlier = new Map<string, number>();
      let { last } = head;
      for (const { event } of batch) {
        const seq = this.#ids?.get(event.id);
        if (seq !== undefined) earlier.set(event.id, seq);
        if (seq !== undefined || fresh.has(event.id)) continue;
        last += 1;
        fresh.set(event.id, commitEvent(event, last, now));
      }
      const events = [...fresh.values()];
      if (events.length > 0) {
        const appended = appendEvents(head, events, retain, now);
        const version = randomId();
        const swapped = await store.swap({
          actor: this.#row(this.id, 'head', known.created, now + Math.max(retain.ms, HEAD_MS)),
          snapshot: { version, data: topicText(appended.head) },
          expected: known.version,
        });
        if (!swapped) {
          this.#known = undefined;
          if (attempt >= ATTEMPTS)
            throw new EventError(
              'busy',
              `event "${this.name}": other nodes have appended before each of ${ATTEMPTS} attempts. Nothing was stored. Retry`,
            );
          await this.#pause(attempt);
          continue;
        }
        this.#known = { head: appended.head, version, created: known.created };
        if (this.#ids) for (const { id, seq } of events) this.#ids.set(id, seq);
        this.#forget(appended.head.epoch, appended.dropped);
      }
      for (const { event, resolve } of batch) {
        const committed = fresh.get(event.id);
        const seq = earlier.get(event.id) ?? 0;
        resolve(committed ?? commitEvent(event, seq, now));
      }
      if (events.length > 0) {
        this.announce(events);
        this.#options.committed(this, events);
      }
      return;
    }
  }

  #pause(attempt: number): Promise<void> {
    const ms = randomInt(delayAfter(BACK_OFF, attempt) + 1);
    return new Promise((resolve) => void this.#options.clock.after(ms, resolve));
  }

  /** Another node may have stored the same part, with the same events. */
  async #storePart({ epoch, tail }: TopicHead): Promise<void> {
    const { store, clock, retain } = this.#options;
    const first = tail[0]?.seq ?? 0;
    const actor = this.#row(
      partId(this.id, epoch, first),
      'part',
      clock.date(),
      clock.date() + retain.ms + PART_SLACK_MS,
    );
    await store.swap({ actor, snapshot: { version: randomId(), data: partText(tail) }, expected: undefined });
    this.#options.parts.set(actor.id, tail);
  }

  /** Readers that have an older head find nothing of these parts, and read the newer head. */
  #forget(epoch: string, dropped: readonly TopicPart[]): void {
    if (dropped.length === 0) return;
    const { parts, store } = this.#options;
    const gone = dropped.map(({ first }) => partId(this.id, epoch, first));
    for (const id of gone) parts.delete(id);
    // Without it, they expire.
    store.commit(gone.map((actor) => ({ type: 'forget', actor }))).catch(() => {});
  }

  #row(id: string, status: string, created: number, expires: number): ActorRow {
    return { id, kind: 'topic', name: status === 'head' ? this.name : '', principal: '', status, created, expires };
  }

  /** The head as it was last known, or as it is stored. */
  #head(): Promise<KnownHead> {
    return this.#known ? Promise.resolve(this.#known) : this.#load();
  }

  /** Reads the stored head. A read on its way may be older than the news that the caller has: all who come meanwhile share the next one. */
  #load(): Promise<KnownHead> {
    if (this.#loading) {
      this.#nextLoad ??= this.#loading
        .catch(() => {})
        .then(() => {
          this.#nextLoad = undefined;
          return this.#load();
        });
      return this.#nextLoad;
    }
    this.#loading = this.#read().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #read(): Promise<KnownHead> {
    const { store, clock } = this.#options;
    const before = this.#known;
    const stored = await store.load(this.id);
    const now = clock.date();
    const version = stored?.snapshot?.version;
    const known = this.#known;
    // A commit of this process meanwhile is newer than the read head.
    if (known && (known.version === version || known !== before)) return known;
    const expired = stored?.actor.expires !== undefined && stored.actor.expires <= now;
    const head = stored?.snapshot && !expired ? readHead(stored.snapshot.data) : NEW_TOPIC(this.#options.epoch);
    if (known && known.head.epoch !== head.epoch) this.#ids &&= new Map();
    this.#known = { head, version, created: stored?.actor.created ?? now };
    return this.#known;
  }

  async #eventsAfter(head: TopicHead, after: number, limit: number): Promise<readonly TopicEvent[]> {
    const events: TopicEvent[] = [];
    let bytes = 0;
    const take = (from: readonly TopicEvent[]): boolean => {
      for (const event of from) {
        if (event.seq <= after) continue;
        if (events.length >= limit || (events.length > 0 && bytes + event.bytes > PAGE_BYTES)) return false;
        events.push(event);
        bytes += event.bytes;
      }
      return true;
    };
    for (const part of head.parts) if (part.last > after && !take(await this.#part(head.epoch, part))) return events;
    take(head.tail);
    return events;
  }

  /** @throws {StoreError} `purged` if its row is gone */
  async #part(epoch: string, part: TopicPart): Promise<readonly TopicEvent[]> {
    const { parts, store } = this.#options;
    const id = partId(this.id, epoch, part.first);
    const kept = parts.get(id);
    if (kept) return kept;
    const stored = await store.load(id);
    if (!stored?.snapshot) throw new StoreError('purged', `${this.id}: events from ${part.first} on were deleted`);
    const events = readPart(stored.snapshot.data, part);
    parts.set(id, events);
    return events;
  }

  /** Knows the ids of the latest events, also of those that other processes have committed. */
  async #indexIds(head: TopicHead): Promise<void> {
    const ids = this.#ids ?? new Map<string, number>();
    const from = head.last - MAX_IDS;
    const known = [...ids.values()].at(-1) ?? from;
    for (const part of head.parts)
      if (part.last > Math.max(known, from))
        for (const { id, seq } of await this.#part(head.epoch, part)) ids.set(id, seq);
    for (const { id, seq } of head.tail) ids.set(id, seq);
    for (const [id, seq] of ids) {
      if (seq > from) break;
      ids.delete(id);
    }
    this.#ids = ids;
  }

  #failureOf(error: unknown): unknown {
    if (!(error instanceof StoreError)) return error;
    const { fault } = error;
    const what =
      fault === 'failed'
        ? 'the store failed, and it is unknown whether the event was stored. Emit it again with the same id: an id is stored once'
        : 'the store rejected the event, and it was not stored';
    return new EventError('store', `event "${this.name}": ${what}`, { cause: error });
  }
}

/** The id of a topic in the store. */
export function topicId(name: string, by: string): string {
  return `topic/${sha256(`${name}\n${by}`)}`;
}

function partId(topic: string, epoch: string, first: number): string {
  return `${topic}/${epoch}.${first}`;
}
