/**
 * The subscription of a mount to one event type of its upstream, with one set of arguments: appends the events to a topic of this
 * server, and stores the position up to which it has them. It outlives its connections, and continues at its position.
 */
import type { Authorization } from '../../client/authorization.ts';
import { ClientError, ErrorResponse } from '../../client/client-errors.ts';
import type { ConnectedClient } from '../../client/connected-client.ts';
import { type EventGap, FINAL_CODES, type ServerEvent, type ServerEvents } from '../../client/server-events.ts';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { type Clock, pause, type Timer } from '../../core/kernel/clock.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { ForeignEvent } from '../../features/events/event-topics.ts';
import { EVENT_ID } from '../../features/events/event-wire.ts';
import type { RelayedSubscription, RelayRecord, StoredRelay } from './relay-record.ts';

/** A connection to the upstream, and what authorizes the requests on it. */
export interface RelayConnection {
  readonly client: ConnectedClient;
  readonly authorization: Authorization | undefined;
  /** Identifies the upstream. */
  readonly target: string | undefined;
}

export interface EventRelayOptions {
  readonly subscription: RelayedSubscription;
  readonly record: RelayRecord;
  readonly clock: Clock;
  /** The ways in which the upstream delivers events of the type. */
  delivery(): readonly string[];
  connect(): Promise<RelayConnection>;
  /** Appends to the topic. Resolves when it is durable. */
  append(event: ForeignEvent): Promise<void>;
  /** The upstream, or the store, has failed; the relay tries again. */
  failed(error: unknown): void;
}

/** Appended events that the store has not confirmed. */
const MOST_UNCONFIRMED = 64;
/** Milliseconds between two writes of the position: after a crash, what came since comes again, with the same ids. */
const STORE_MS = 1_000;
/** Milliseconds after which a position that is still the same is stored again, so that it does not expire. */
const RENEW_MS = 86_400_000;
const BACK_OFF = { fromMs: 1_000, toMs: 60_000 };
/** Milliseconds for which an upstream has to reject a subscription before its subscribers learn that it is over. */
const REJECTED_MS = 60_000;
/** The same for a lack of rights: a token may be renewed. */
const UNAUTHORIZED_MS = 600_000;

/** The upstream rejects the subscription, since this time of the monotonic clock. */
interface Rejection {
  readonly error: ClientError;
  readonly since: number;
}

export class EventRelay {
  readonly subscription: RelayedSubscription;
  readonly #options: EventRelayOptions;
  readonly #clock: Clock;
  /** When it was last asked for, by the monotonic clock. */
  usedAt: number;
  /** Resolves when the topic has, or will have, every event from now on. Rejects if the upstream rejects the subscription before. */
  readonly opened: Promise<void>;
  #open: { resolve(): void; reject(error: unknown): void } | undefined;
  /** Undefined before the first answer of the upstream. */
  #stored: StoredRelay | undefined;
  #storedAt = Number.NEGATIVE_INFINITY;
  #events: ServerEvents | undefined;
  /** The events that the store has not confirmed. */
  #unconfirmed: Promise<void>[] = [];
  #positions: Promise<void> = Promise.resolve();
  /** The topic has the place of the gap before what comes next. */
  #gapMarked = false;
  #failure: Rejection | undefined;
  #failures = 0;
  #writing: Timer | undefined;
  #written: Promise<void> = Promise.resolve();
  #waking: AbortController | undefined;
  #ended = false;
  #forgotten = false;

  /** @param stored the position that an earlier relay of this topic has left */
  constructor(options: EventRelayOptions, stored: StoredRelay | undefined) {
    this.#options = options;
    this.subscription = options.subscription;
    this.#clock = options.clock;
    this.usedAt = options.clock.now();
    this.#stored = stored;
    this.opened = new Promise((resolve, reject) => {
      this.#open = { resolve, reject };
    });
    // Without a waiting subscriber, its rejection is no error.
    this.opened.catch(() => {});
    void this.#run();
  }

  /** True if a position is stored: the events after it come, now or later. */
  get begun(): boolean {
    return this.#stored !== undefined;
  }

  /** The error of an upstream that rejects the subscription; undefined while it has it, or cannot be reached. */
  get rejection(): ClientError | undefined {
    return this.#failure?.error;
  }

  /** The same once it is certain that it is no passing failure. */
  get finalRejection(): ClientError | undefined {
    if (!this.#failure) return undefined;
    const { error, since } = this.#failure;
    const ms = error instanceof ErrorResponse ? REJECTED_MS : UNAUTHORIZED_MS;
    return this.#clock.now() - since >= ms ? error : undefined;
  }

  /** Connects again: another upstream has taken the place of the present one. */
  reconnect(): void {
    this.#failures = 0;
    void this.#events?.return();
    this.#waking?.abort();
  }

  /** Stores the position, and ends. Idempotent. */
  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    void this.#events?.return();
    this.#waking?.abort();
    this.#open?.reject(new Error('the relay has ended'));
    await Promise.allSettled(this.#unconfirmed);
    if (this.#writing) await this.#write();
  }

  /** Ends, and stores nothing more. */
  async forget(): Promise<void> {
    this.#forgotten = true;
    await this.end();
    await this.#written.catch(() => {});
  }

  async #run(): Promise<void> {
    while (!this.#ended) {
      try {
        await this.#follow(await this.#options.connect());
        this.#failures = 0;
      } catch (error) {
        this.#rejected(error);
      }
      if (this.#ended) return;
      this.#waking = new AbortController();
      this.#failures += 1;
      await pause(this.#clock, delayAfter(BACK_OFF, Math.min(this.#failures, 10)), this.#waking.signal);
    }
  }

  /** Reads the upstream until the connection ends: first by polls, until nothing is left, then in the best way. */
  async #follow({ client, authorization, target }: RelayConnection): Promise<void> {
    const delivery = this.#options.delivery();
    const before = this.#stored;
    const isSame = before !== undefined && before.target === target;
    // An upstream that cannot replay has lost the events since the position, and another upstream never had them.
    if (before && !this.#gapMarked && (!isSame || before.cursor === undefined)) {
      await this.#append({ gap: true, cursor: undefined });
      this.#gapMarked = true;
    }
    this.#stored &&= { ...this.#stored, target, cursor: isSame ? before?.cursor : undefined };
    const polls = delivery.includes('poll');
    const streams = delivery.includes('push') && client.server.era === 'modern';
    if (polls) {
      await this.#read(client, authorization, target, 'poll', (more) => streams && !more);
      if (!streams) return;
    }
    if (!this.#ended) await this.#read(client, authorization, target, polls ? 'auto' : 'stream', () => false);
  }

  /** @param isOver called at each position; true ends the reading */
  async #read(
    client: ConnectedClient,
    authorization: Authorization | undefined,
    target: string | undefined,
    via: 'auto' | 'stream' | 'poll',
    isOver: (more: boolean) => boolean,
  ): Promise<void> {
    const { name, arguments: args } = this.subscription;
    let failure: unknown;
    const stop = (error?: unknown): void => {
      failure ??= error;
      void events.return();
    };
    const events = client.relayedEvents(name, args, {
      ...{ via, authorization, since: this.#stored?.cursor },
      positioned: (cursor, more) => {
        this.#failure = undefined;
        this.#failures = 0;
        const over = isOver(more);
        // One after the other: a later position must not be stored, or answered, before an earlier one.
        this.#positions = this.#positions
          .then(() => this.#reached({ ...this.subscription, target, cursor }, !more))
          .then(() => (over ? stop() : undefined), stop);
      },
      failed: (error) => {
        // Without rights, and before the first answer, it is for the caller to know.
        if (isUnauthorized(error) || !this.begun) stop(error);
        else this.#options.failed(error);
      },
    });
    this.#events = events;
    try {
      for await (const event of events) await this.#append(event);
      await Promise.all(this.#unconfirmed);
    } finally {
      this.#events = undefined;
      this.#unconfirmed = [];
      await events.return();
    }
    if (failure !== undefined) throw failure;
  }

  async #append(event: ServerEvent | EventGap): Promise<void> {
    const appended = this.#options.append(foreign(event, this.#clock.date()));
    appended.catch(() => {});
    this.#unconfirmed.push(appended);
    if (this.#unconfirmed.length < MOST_UNCONFIRMED) return;
    await Promise.all(this.#unconfirmed);
    this.#unconfirmed = [];
  }

  /** Everything up to a position was appended. @param caughtUp the upstream has nothing more now */
  async #reached(position: StoredRelay, caughtUp: boolean): Promise<void> {
    await Promise.all(this.#unconfirmed);
    const isFirst = !this.#stored;
    const isOld = this.#clock.date() - this.#storedAt > RENEW_MS;
    const moved = this.#stored?.cursor !== position.cursor || this.#stored?.target !== position.target;
    this.#stored = position;
    this.#gapMarked = false;
    // No subscriber may have a cursor of the topic before the relay can continue after a crash.
    if (isFirst) await this.#write();
    else if (moved || isOld) this.#writing ??= this.#clock.after(STORE_MS, () => this.#writeLater());
    if (caughtUp) this.#open?.resolve();
  }

  #writeLater(): void {
    // A position that is not stored only leads to repeats.
    this.#write().catch((error: unknown) => this.#options.failed(error));
  }

  async #write(): Promise<void> {
    this.#writing?.cancel();
    this.#writing = undefined;
    if (!this.#stored || this.#forgotten) return;
    const now = this.#clock.date();
    this.#written = this.#options.record.write(this.#stored, now);
    await this.#written;
    this.#storedAt = now;
  }

  #rejected(error: unknown): void {
    if (this.#ended) return;
    this.#options.failed(error);
    this.#open?.reject(error);
    const isFinal = (error instanceof ErrorResponse && FINAL_CODES.has(error.code)) || isUnauthorized(error);
    if (!isFinal) this.#failure = undefined;
    else this.#failure = { error, since: this.#failure?.since ?? this.#clock.now() };
  }
}

function isUnauthorized(error: unknown): error is ClientError {
  return error instanceof ClientError && (error.reason === 'unauthorized' || error.reason === 'forbidden');
}

/** An event of an upstream, as the topic stores it. Its id becomes a header of HTTP: one that cannot be one has a digest in its place. */
function foreign(event: ServerEvent | EventGap, now: number): ForeignEvent {
  if (event.gap) return { id: `gap_${randomId()}`, at: now, data: undefined };
  const at = Date.parse(event.timestamp);
  return {
    id: EVENT_ID.test(event.id) ? event.id : sha256(event.id),
    at: at >= 0 ? at : now,
    data: event.data,
  };
}
