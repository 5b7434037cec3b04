/** The relays of one mount: one for each event type, grant and arguments that somebody subscribes to, from the first to a while after the last. */
import { ClientError, ErrorResponse } from '../../client/client-errors.ts';
import { type Clock, type Timer, within } from '../../core/kernel/clock.ts';
import type { LogFields, RuntimeLog } from '../../core/kernel/operator-log.ts';
import { isExcess, Quota, type Reservation } from '../../core/kernel/quota.ts';
import { ErrorCode } from '../../core/protocol/errors.ts';
import { isJsonObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { digest } from '../../core/store/seal.ts';
import type { Store } from '../../core/store/store.ts';
import type { EventSource, SourcedSubscription, SourceFailure } from '../../features/events/event-source.ts';
import type { EventTopics } from '../../features/events/event-topics.ts';
import { eventsError, eventsFailure } from '../../features/events/event-wire.ts';
import { EventRelay } from './event-relay.ts';
import { type RelayedSubscription, RelayRecord, type StoredRelay } from './relay-record.ts';
import type { ReplaceableUpstream } from './replaceable-upstream.ts';
import { answerFailure } from './upstream-error.ts';

/** The event types of a server, as its mounts use them. */
export type TopicsOfMounts = Pick<EventTopics, 'append' | 'announce' | 'relayed'>;

export interface EventRelaysOptions {
  readonly mount: string;
  readonly upstream: ReplaceableUpstream;
  readonly clock: Clock;
  readonly log: RuntimeLog;
  /** Opens the store. */
  store(): Promise<Store>;
  /** Created with the first event type. */
  topics(): TopicsOfMounts;
  /** Maximum number of relays. */
  readonly most: number;
}

/** A relay, with its place in the limit. */
interface HeldRelay {
  readonly relay: EventRelay;
  readonly place: Reservation;
}

/** Milliseconds until a relay ends after its last subscriber, and after the last poll. */
const LINGER_MS = 600_000;
const SWEEP_MS = 60_000;
/** Milliseconds that a subscriber waits until the upstream has answered. */
const OPEN_MS = 10_000;
/** The part of all relays that one principal may begin. */
const SHARE = 4;
const MOUNT_EVENT: LogFields = { event: 'mount' };

export class EventRelays {
  readonly #options: EventRelaysOptions;
  readonly #quota: Quota;
  /** By offered name and topic. */
  readonly #relays = new Map<string, HeldRelay>();
  readonly #opening = new Map<string, Promise<EventRelay | undefined>>();
  /** The ways of delivery of each type, by its name upstream. */
  readonly #delivery = new Map<string, readonly string[]>();
  /** The listeners of a topic, also while it has no relay. */
  readonly #holders = new Map<string, number>();
  #sweep: Timer | undefined;
  #closed = false;

  constructor(options: EventRelaysOptions) {
    this.#options = options;
    const { most } = options;
    const option = 'maxEventRelays of the mount';
    this.#quota = new Quota({
      ...{ what: 'subscriptions to events of an upstream', max: most, option },
      perPrincipal: { max: Math.ceil(most / SHARE), option: `a part of ${option}` },
    });
  }

  get size(): number {
    return this.#relays.size;
  }

  /**
   * The source of an event type.
   *
   * @param name of the type upstream
   * @param offered its name here
   */
  sourceOf(name: string, offered: string, delivery: readonly string[]): EventSource {
    this.#delivery.set(name, delivery);
    const { upstream } = this.#options;
    const topicOf = (args: JsonObject, principal: string): string =>
      digest([upstream.current.readerOfEvents(principal) ?? null, args]);
    return {
      topicOf,
      feed: (subscription) =>
        this.#feed(name, offered, topicOf(subscription.arguments, subscription.principal), subscription),
      hold: (topic) => this.#hold(offered, topic),
      failureOf: (topic) => {
        const rejection = this.#relays.get(keyOf(offered, topic))?.relay.finalRejection;
        return rejection && this.#failure(rejection);
      },
    };
  }

  /** Ends the relays of all other types: they are offered no more. @param offered their names here */
  retain(offered: ReadonlySet<string>): void {
    for (const key of [...this.#relays.keys()]) if (!offered.has(nameIn(key))) void this.#end(key);
  }

  /** Another upstream has taken the place of the present one. */
  reconnect(): void {
    for (const { relay } of this.#relays.values()) relay.reconnect();
  }

  /** Ends the relays that read with the grant of a principal, so that they store nothing more. */
  async forget(principal: string): Promise<void> {
    await Promise.allSettled(this.#opening.values());
    const own = [...this.#relays].filter(([, { relay }]) => relay.subscription.principal === principal);
    await Promise.all(own.map(([key, { relay }]) => Promise.all([relay.forget(), this.#end(key)])));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#sweep?.cancel();
    await Promise.all([...this.#relays.keys()].map((key) => this.#end(key)));
  }

  async #feed(name: string, offered: string, topic: string, asked: SourcedSubscription): Promise<void> {
    const { clock, mount, upstream } = this.#options;
    const { arguments: args, principal, fromNow } = asked;
    const key = keyOf(offered, topic);
    const wanted = { name, arguments: args, principal: upstream.current.readerOfEvents(principal) };
    const relay = await this.#open(key, wanted, principal, (message) =>
      eventsError('exhausted', 'sep', `${mount}: ${message}`, { limit: 'maxEventRelays', max: this.#options.most }),
    );
    if (!relay) throw eventsError('not found', 'sep', `Unknown event: ${offered}`, { kind: 'event' });
    relay.usedAt = clock.now();
    if (relay.rejection) throw this.#errorOf(relay.rejection, offered);
    if (relay.begun && !fromNow) return;
    try {
      const late = (): Error =>
        new ClientError(mount, { reason: 'timed out', message: 'no answer about events', carriedOut: 'no' });
      await within(relay.opened, clock, OPEN_MS, late);
    } catch (error) {
      // Its events come when the upstream is back.
      if (relay.begun && !relay.rejection) return;
      if (!relay.begun) void this.#end(key, relay);
      throw this.#errorOf(error, offered);
    }
  }

  #hold(offered: string, topic: string): () => void {
    const key = keyOf(offered, topic);
    this.#holders.set(key, (this.#holders.get(key) ?? 0) + 1);
    // After a restart, the store knows what the topic was fed with.
    this.#open(key, undefined, undefined, (message) => new Error(message)).catch((error: unknown) =>
      this.#failed(offered, error),
    );
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const left = (this.#holders.get(key) ?? 1) - 1;
      if (left > 0) this.#holders.set(key, left);
      else this.#holders.delete(key);
      const held = this.#relays.get(key);
      if (held) held.relay.usedAt = this.#options.clock.now();
    };
  }

  /**
   * The relay of a topic, which begins if there is none.
   *
   * @param wanted undefined: what the store has
   * @returns undefined if nothing is wanted, and the store has nothing
   */
  #open(
    key: string,
    wanted: RelayedSubscription | undefined,
    principal: string | undefined,
    exhausted: (message: string) => Error,
  ): Promise<EventRelay | undefined> {
    const known = this.#relays.get(key);
    if (known) return Promise.resolve(known.relay);
    const opening =
      this.#opening.get(key) ??
      this.#begin(key, wanted, principal, exhausted).finally(() => void this.#opening.delete(key));
    this.#opening.set(key, opening);
    // Another one may have looked for what the store has.
    return wanted ? opening.then((relay) => relay ?? this.#begin(key, wanted, principal, exhausted)) : opening;
  }

  async #begin(
    key: string,
    wanted: RelayedSubscription | undefined,
    principal: string | undefined,
    exhausted: (message: string) => Error,
  ): Promise<EventRelay | undefined> {
    const record = new RelayRecord(await this.#options.store(), key);
    const stored = await record.read();
    const subscription = wanted ?? stored;
    if (!subscription || this.#closed) return undefined;
    const known = this.#relays.get(key);
    if (known) return known.relay;
    const place = this.#reserve(principal);
    if (typeof place === 'string') throw exhausted(place);
    const relay = this.#relay(key, subscription, record, stored);
    this.#relays.set(key, { relay, place });
    this.#sweepLater();
    return relay;
  }

  /** @param principal undefined: the relay is one of before, and is counted in any case. @returns the limit that is reached */
  #reserve(principal: string | undefined): Reservation | string {
    if (principal === undefined) return this.#quota.take('');
    const first = this.#quota.reserve(principal);
    if (!isExcess(first)) return first;
    // Those without a subscriber make room.
    this.#endIdle(SWEEP_MS);
    const second = this.#quota.reserve(principal);
    return isExcess(second) ? second.message : second;
  }

  #relay(
    key: string,
    { name, arguments: args, principal }: RelayedSubscription,
    record: RelayRecord,
    stored: StoredRelay | undefined,
  ): EventRelay {
    const { clock, topics, upstream } = this.#options;
    const [offered, topic] = [nameIn(key), topicIn(key)];
    return new EventRelay(
      {
        ...{ subscription: { name, arguments: args, principal }, record, clock },
        delivery: () => this.#delivery.get(name) ?? [],
        connect: () => upstream.current.forEvents(principal),
        append: (event) => topics().append(offered, topic, event),
        failed: (error) => this.#failed(offered, error),
      },
      stored,
    );
  }

  #failed(offered: string, error: unknown): void {
    if (this.#closed) return;
    const { log, mount } = this.#options;
    log('warning', `mount "${mount}": events "${offered}" are not received: ${messageOf(error)}`, MOUNT_EVENT);
  }

  #sweepLater(): void {
    this.#sweep ??= this.#options.clock.after(SWEEP_MS, () => {
      this.#sweep = undefined;
      this.#endIdle(LINGER_MS);
      if (this.#relays.size > 0) this.#sweepLater();
    });
  }

  /** Ends the relays to which nothing listens, and that were not used for as long. */
  #endIdle(ms: number): void {
    const now = this.#options.clock.now();
    for (const [key, { relay }] of this.#relays)
      if (!this.#holders.has(key) && relay.begun && now - relay.usedAt >= ms) void this.#end(key);
  }

  /** @param relay ends nothing else */
  #end(key: string, relay?: EventRelay): Promise<void> {
    const held = this.#relays.get(key);
    if (!held || (relay && held.relay !== relay)) return Promise.resolve();
    this.#relays.delete(key);
    held.place.release();
    return held.relay.end().catch((error: unknown) => this.#failed(nameIn(key), error));
  }

  /** The error of an upstream, as a subscriber learns of it. */
  #failure(error: unknown): SourceFailure | undefined {
    const { mount } = this.#options;
    if (error instanceof ErrorResponse) {
      const failure = error.code === ErrorCode.MethodNotFound ? 'unsupported' : eventsFailure(error.code);
      const data = isJsonObject(error.data) ? { data: error.data } : {};
      // No callback of a client goes upstream.
      if (!failure || failure === 'callback') return undefined;
      return { failure, message: `${mount}: ${error.text}`, ...data };
    }
    if (!(error instanceof ClientError) || (error.reason !== 'unauthorized' && error.reason !== 'forbidden'))
      return undefined;
    const advice = 'Call a tool of it, which lets you sign in there, and subscribe again';
    return { failure: 'forbidden', message: `${mount}: the server does not accept the caller. ${advice}` };
  }

  #errorOf(error: unknown, offered: string): unknown {
    const known = this.#failure(error);
    if (known) return eventsError(known.failure, 'sep', known.message, known.data);
    try {
      return answerFailure({ mount: this.#options.mount, method: 'events/poll', about: offered }, error);
    } catch (answer) {
      return answer;
    }
  }
}

function keyOf(offered: string, topic: string): string {
  return `${offered}\n${topic}`;
}

function nameIn(key: string): string {
  return key.slice(0, key.indexOf('\n'));
}

function topicIn(key: string): string {
  return key.slice(key.indexOf('\n') + 1);
}
