/**
 * The outbox of one instance: the messages that are durable and not accepted yet, in one queue for each target. It delivers the
 * first message of each queue until its target has accepted it, and then trims it from the store.
 */
import { delayAfter } from '../../../core/kernel/back-off.ts';
import type { Clock, Timer } from '../../../core/kernel/clock.ts';
import type { Limits } from '../../../core/kernel/limits.ts';
import type { Excess } from '../../../core/kernel/quota.ts';
import { messageOf } from '../../../core/protocol/json.ts';
import type { Attempts } from '../../../core/store/attempts.ts';
import type { Store, Write } from '../../../core/store/store.ts';
import type { Footprint } from '../footprint.ts';
import type { HandleRecord } from '../handle-record.ts';
import { nameOfMessage, OUT_TIMER, type OutMessage, streamOf } from './out-message.ts';
import { isRetried, Undeliverable } from './undeliverable.ts';

/** The longest chain of messages: a longer one is a circle of machines that tell each other without end. */
const MOST_HOPS = 32;
/** Milliseconds until the next attempt. */
const BACK_OFF = { fromMs: 50, toMs: 10_000 };
/** Bytes of memory for each character of a message. */
const BYTES = 3;

/** Delivers a message. It resolves when the message is accepted for good, and throws {@link Undeliverable} if it never will be. */
export type Deliver = (message: OutMessage) => Promise<void>;

/** The parts that one outbox uses. */
export interface OutboxHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'tellMs'>;
  readonly pace: { run(job: () => Promise<void>): void };
  readonly attempts: Attempts;
  date(): number;
  readonly deliver: Deliver;
  /** Gives a message up. @param trim becomes durable with it */
  failed(message: OutMessage, error: unknown, attempts: number, trim: Write): Promise<void>;
  emptied(outbox: Outbox): void;
}

/** The messages to one target, in order. */
interface Lane {
  readonly stream: string;
  readonly messages: OutMessage[];
  /** The last row of the stream. */
  last: number;
  /** The first one is on its way, or waits for its next attempt. */
  busy: boolean;
  attempts: number;
  retry: Timer | undefined;
}

export class Outbox {
  readonly actor: string;
  readonly #footprint: Footprint;
  readonly #host: OutboxHost;
  readonly #lanes = new Map<string, Lane>();
  /** The last message of each stream that needs no delivery any more and is not trimmed yet. */
  #accepted = new Map<string, number>();
  /** Messages in commits that are not durable yet. */
  #reserved = 0;
  #count = 0;
  #length = 0;
  #trimming: Promise<void> | undefined;
  #again: Timer | undefined;
  /** The first message that this process has written: the store is not read for it and for later ones. */
  first = Number.POSITIVE_INFINITY;
  /** The store is being read. */
  loading = false;
  #dropped = false;

  constructor({ id, footprint }: Pick<HandleRecord, 'id' | 'footprint'>, host: OutboxHost) {
    this.actor = id;
    this.#footprint = footprint;
    this.#host = host;
  }

  /** The number of messages that wait, and their length in characters of JSON. */
  get count(): number {
    return this.#count;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Counts messages whose commit begins.
   *
   * @returns the exceeded limit of the owner's memory, and then nothing changes
   */
  reserve(messages: readonly OutMessage[]): Excess | undefined {
    const length = messages.reduce((sum, message) => sum + message.length, this.#length);
    const excess = this.#footprint.messages(BYTES * length);
    if (excess) return excess;
    this.#reserved += 1;
    this.#add(messages, 1);
    for (const { seq } of messages) if (seq < this.first) this.first = seq;
    return undefined;
  }

  /** Their commit is durable: delivers them. */
  deliver(messages: readonly OutMessage[]): void {
    this.#reserved -= 1;
    for (const message of messages) {
      const lane = this.#laneOf(streamOf(message.to));
      lane.messages.push(message);
      lane.last = message.seq;
      if (!this.loading) this.#next(lane);
    }
  }

  /** Their commit has failed, or a later one has withdrawn them. @param row the number of the rows that withdraw them */
  release(messages: readonly OutMessage[], row?: number): void {
    this.#reserved -= 1;
    this.#add(messages, -1);
    if (row !== undefined)
      for (const { to } of messages) {
        const lane = this.#laneOf(streamOf(to));
        lane.last = row;
        if (!lane.busy) this.#next(lane);
      }
    this.#trim();
  }

  /** Adds the messages that an earlier process has left, by stream. @param last the number of its last row */
  restore(
    streams: readonly { readonly stream: string; readonly last: number; readonly messages: readonly OutMessage[] }[],
  ): void {
    this.loading = false;
    for (const { stream, last, messages } of streams) {
      // Later ones are here already, or not durable yet.
      const left = messages.filter(({ seq }) => seq < this.first);
      this.#add(left, 1);
      const lane = this.#laneOf(stream);
      lane.messages.unshift(...left);
      lane.last = Math.max(lane.last, Math.min(last, this.first - 1));
    }
    for (const lane of [...this.#lanes.values()]) this.#next(lane);
    this.#trim();
  }

  /** Forgets everything: another process delivers what is left. Resolves when this one writes nothing more. */
  async drop(): Promise<void> {
    this.#dropped = true;
    this.#again?.cancel();
    for (const { retry } of this.#lanes.values()) retry?.cancel();
    await this.#trimming;
  }

  #add(messages: readonly OutMessage[], sign: 1 | -1): void {
    this.#count += sign * messages.length;
    for (const { length } of messages) this.#length += sign * length;
    this.#footprint.messages(BYTES * this.#length, 'forced');
  }

  #laneOf(stream: string): Lane {
    const found = this.#lanes.get(stream);
    if (found) return found;
    const lane: Lane = { stream, messages: [], last: 0, busy: false, attempts: 0, retry: undefined };
    this.#lanes.set(stream, lane);
    return lane;
  }

  #next(lane: Lane): void {
    if (lane.busy || this.#dropped) return;
    const message = lane.messages[0];
    if (!message) {
      // The rows that withdraw messages go with it.
      if (lane.last > 0) this.#accepted.set(lane.stream, lane.last);
      this.#lanes.delete(lane.stream);
      return;
    }
    lane.busy = true;
    this.#host.pace.run(() => this.#deliver(lane, message));
  }

  async #deliver(lane: Lane, message: OutMessage): Promise<void> {
    if (this.#dropped) return;
    lane.attempts += 1;
    try {
      if (message.hops > MOST_HOPS)
        throw new Undeliverable(
          'hops',
          `this message is the last of a chain of ${message.hops}: expected at most ${MOST_HOPS}`,
        );
      await this.#host.deliver(message);
    } catch (error) {
      if (!this.#dropped) await this.#failed(lane, message, error);
      return;
    }
    this.#host.attempts.count('done');
    this.#done(lane, message);
  }

  async #failed(lane: Lane, message: OutMessage, error: unknown): Promise<void> {
    const { clock, date, limits, attempts } = this.#host;
    const late = date() - message.at >= limits.tellMs;
    if (isRetried(error) && !late) {
      const ms = delayAfter(BACK_OFF, lane.attempts);
      attempts.count('failed');
      attempts.failed(nameOfMessage(message), lane.attempts, ms, error);
      lane.retry = clock.after(ms, () => this.#retry(lane));
      return;
    }
    const why = isRetried(error) ? new Undeliverable('late', `no acceptance in time: ${messageOf(error)}`) : error;
    const trim: Write = { type: 'trim', actor: this.actor, stream: lane.stream, upto: message.seq };
    try {
      await this.#host.failed(message, why, lane.attempts, trim);
    } catch {
      // The sender cannot be notified now, or the store does not write: everything of it happens again.
      lane.retry = clock.after(BACK_OFF.toMs, () => this.#retry(lane));
      return;
    }
    this.#done(lane, message);
  }

  #retry(lane: Lane): void {
    lane.retry = undefined;
    lane.busy = false;
    this.#next(lane);
  }

  #done(lane: Lane, message: OutMessage): void {
    lane.busy = false;
    lane.attempts = 0;
    lane.messages.shift();
    this.#add([message], -1);
    this.#accepted.set(lane.stream, message.seq);
    this.#next(lane);
    this.#trim();
  }

  /** Trims what was accepted, in one commit at a time. The last one takes the timer away. */
  #trim(): void {
    if (this.#trimming || this.#dropped || this.loading) return;
    const isEmpty = this.#count === 0 && this.#reserved === 0;
    if (this.#accepted.size === 0 && !isEmpty) return;
    const accepted = this.#accepted;
    this.#accepted = new Map();
    const writes: Write[] = [...accepted].map(([stream, upto]) => ({ type: 'trim', actor: this.actor, stream, upto }));
    // Each commit with messages writes the timer again.
    if (isEmpty) writes.push({ type: 'timer off', actor: this.actor, timer: OUT_TIMER });
    this.#trimming = this.#host.store.commit(writes).then(
      () => {
        this.#trimming = undefined;
        if (this.#accepted.size > 0) return this.#trim();
        if (isEmpty && this.#count === 0 && this.#reserved === 0) this.#host.emptied(this);
      },
      () => {
        // The targets recognize what they have accepted.
        this.#trimming = undefined;
        for (const [stream, upto] of accepted) if (!this.#accepted.has(stream)) this.#accepted.set(stream, upto);
        if (!this.#dropped) this.#again ??= this.#host.clock.after(BACK_OFF.toMs, () => this.#trimAgain());
      },
    );
  }

  #trimAgain(): void {
    this.#again = undefined;
    this.#trim();
  }
}
