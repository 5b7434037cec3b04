/** The outboxes of all instances of a server: their bounds, their deliveries, and the letters of what cannot be delivered. */

import type { ActorSystem } from '../../../core/kernel/actor-system.ts';
import type { Limits } from '../../../core/kernel/limits.ts';
import { errorFields } from '../../../core/kernel/operator-log.ts';
import { cellOfActor } from '../../../core/protocol/cell.ts';
import { type JsonObject, messageOf } from '../../../core/protocol/json.ts';
import { Attempts } from '../../../core/store/attempts.ts';
import { type DeadLetter, OUT_STREAMS, type Store, type Write } from '../../../core/store/store.ts';
import { HandleError } from '../handle-error.ts';
import { actorId, type HandleRecord } from '../handle-record.ts';
import { TooLarge } from '../serializable.ts';
import {
  letterText,
  type MessageTarget,
  messageOfLetter,
  messagesIn,
  type NewMessage,
  nameOfMessage,
  OUT_TIMER,
  type OutMessage,
  type Sender,
  streamOf,
  undoneRow,
  written,
} from './out-message.ts';
import { type Deliver, Outbox, type OutboxHost } from './outbox.ts';
import { reasonOf, Undeliverable } from './undeliverable.ts';

/** Deliveries that are on their way at once, of all instances. */
const MOST_DELIVERING = 256;
/** Milliseconds until an outbox is read again that could not be read. */
const READ_AGAIN_MS = 1_000;

/** The parts of a server that its outboxes use. */
export interface OutboxesOptions extends Pick<ActorSystem, 'clock' | 'log' | 'incident' | 'metrics'> {
  readonly store: Store;
  readonly limits: Pick<Limits, 'maxOutMessages' | 'maxOutLength' | 'tellMs'>;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  date(): number;
  /**
   * Sends an event to the sender of a message that was not delivered.
   *
   * @param writes become durable with it
   * @returns undefined if there is no such instance any more: nothing was written
   */
  notify(message: OutMessage, event: FailedEvent, writes: readonly Write[]): Promise<unknown> | undefined;
}

/** The event of the sender whose message was not delivered. */
export interface FailedEvent {
  readonly type: 'tell.failed';
  readonly data: JsonObject;
}

/** The messages of one commit. */
export interface OutBatch {
  readonly actor: string;
  readonly messages: readonly OutMessage[];
  readonly writes: readonly Write[];
}

export class Outboxes {
  readonly #options: OutboxesOptions;
  readonly #host: OutboxHost;
  readonly #attempts: Attempts;
  readonly #outboxes = new Map<string, Outbox>();
  readonly #targets = new Map<MessageTarget['kind'], Deliver>();
  #stopped = false;
  #used = false;

  constructor(options: OutboxesOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options, 'message');
    this.#host = {
      ...{ store: options.store, clock: options.clock, limits: options.limits, pace: new Pace() },
      attempts: this.#attempts,
      date: () => options.date(),
      deliver: (message) => this.#deliver(message),
      failed: (message, error, attempts, trim) => this.#failed(message, error, attempts, trim),
      emptied: (outbox) => {
        if (this.#outboxes.get(outbox.actor) === outbox) this.#outboxes.delete(outbox.actor);
      },
    };
  }

  /** Sets the function that delivers messages to one kind of target. */
  target(kind: MessageTarget['kind'], deliver: Deliver): void {
    this.#targets.set(kind, deliver);
  }

  /**
   * Delivers the message of a dead letter again, as one of its sender, for an operator. A receiver takes it once.
   *
   * @returns false for another letter
   * @throws {HandleError | Undeliverable | Error} if it is not accepted now
   */
  async again(letter: DeadLetter): Promise<boolean> {
    const message = messageOfLetter(letter);
    if (message) await this.#deliver(message);
    return message !== undefined;
  }

  /** The number of messages that wait; undefined before the first message. */
  waitingInAll(): number | undefined {
    if (!this.#used) return undefined;
    return [...this.#outboxes.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** The number of messages of an instance that wait. */
  waiting(actor: string): number {
    return this.#outboxes.get(actor)?.count ?? 0;
  }

  /**
   * Counts the messages of a turn whose commit begins. One of `deliver`, `release` and `withdrawn` ends it.
   *
   * @throws {HandleError} `busy` if too many messages of the instance wait
   * @throws {TooLarge} if the messages of one turn alone are too many
   */
  reserve(entry: HandleRecord, messages: readonly NewMessage[]): OutBatch {
    const { id: actor } = entry;
    const { maxOutMessages, maxOutLength } = this.#options.limits;
    const at = Math.round(this.#options.date());
    const all = messages.map((message) => written(actor, senderOf(entry), message, at));
    const length = all.reduce((sum, { message }) => sum + message.length, 0);
    if (all.length > maxOutMessages || length > maxOutLength)
      throw new TooLarge(
        `expected at most ${maxOutMessages} messages of ${maxOutLength} characters in one turn, got ${all.length} of ${length} (the server's options are limits.maxOutMessages and limits.maxOutLength)`,
      );
    const outbox = this.#outboxes.get(actor) ?? new Outbox(entry, this.#host);
    if (outbox.count + all.length > maxOutMessages || outbox.length + length > maxOutLength)
      throw new HandleError(
        'busy',
        `${outbox.count} messages of this instance wait to be delivered, and its new ones exceed the limit. Nothing has happened. Try again in a moment (the server's options are limits.maxOutMessages and limits.maxOutLength)`,
      );
    const batch: OutBatch = {
      actor,
      messages: all.map(({ message }) => message),
      // Always due, so that a node finds it first of all.
      writes: [...all.map(({ row }) => row), { type: 'timer', timer: { actor, timer: OUT_TIMER, due: 0, data: '' } }],
    };
    const excess = outbox.reserve(batch.messages);
    if (excess) throw new HandleError('busy', `${excess.message}. Try again when some messages have been delivered.`);
    this.#used = true;
    this.#outboxes.set(actor, outbox);
    return batch;
  }

  /** The commit of these messages is durable: delivers them. */
  deliver({ actor, messages }: OutBatch): void {
    this.#outboxes.get(actor)?.deliver(messages);
  }

  /** The commit of these messages has failed. */
  release({ actor, messages }: OutBatch): void {
    this.#outboxes.get(actor)?.release(messages);
  }

  /** The rows that withdraw durable messages, which are not delivered yet. @param seq the number of these rows */
  withdrawal({ actor, messages }: OutBatch, seq: number): readonly Write[] {
    const streams = new Map<string, number[]>();
    for (const message of messages) {
      const stream = streamOf(message.to);
      streams.set(stream, [...(streams.get(stream) ?? []), message.seq]);
    }
    return [...streams].map(([stream, seqs]) => undoneRow(actor, stream, seq, seqs));
  }

  /** These rows are durable. */
  withdrawn({ actor, messages }: OutBatch, seq: number): void {
    this.#outboxes.get(actor)?.release(messages, seq);
  }

  /** Delivers the messages that an earlier process has left. */
  resume(entry: HandleRecord): void {
    const outbox = this.#outboxes.get(entry.id) ?? new Outbox(entry, this.#host);
    if (this.#stopped || outbox.loading) return;
    this.#outboxes.set(entry.id, outbox);
    outbox.loading = true;
    void this.#read(outbox, senderOf(entry));
  }

  /** Lets go of the messages of these cells. Resolves when this process writes nothing more of them. */
  async drop(cells: ReadonlySet<number>): Promise<void> {
    const leaving = [...this.#outboxes.values()].filter(({ actor }) => cells.has(cellOfActor(actor) ?? -1));
    for (const { actor } of leaving) this.#outboxes.delete(actor);
    await Promise.all(leaving.map((outbox) => outbox.drop()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const all = [...this.#outboxes.values()];
    this.#outboxes.clear();
    await Promise.all(all.map((outbox) => outbox.drop()));
  }

  async #read(outbox: Outbox, sender: Sender): Promise<void> {
    const { store, limits, clock, log } = this.#options;
    const { actor } = outbox;
    try {
      const streams = (await store.streams(actor)).filter(({ stream }) => stream.startsWith(OUT_STREAMS));
      const rows = await Promise.all(
        streams.map(async ({ stream, last }) => {
          const events = await store.events(actor, stream, 0, limits.maxOutMessages * 2);
          return { stream, last, messages: messagesIn(sender, events) };
        }),
      );
      if (this.#outboxes.get(actor) === outbox) outbox.restore(rows);
    } catch (error) {
      log('warning', `the messages of ${actor} cannot be read yet: ${messageOf(error)}`, errorFields('store', error));
      clock.after(READ_AGAIN_MS, () => {
        if (this.#outboxes.get(actor) === outbox) void this.#read(outbox, sender);
      });
    }
  }

  #deliver(message: OutMessage): Promise<void> {
    const deliver = this.#targets.get(message.to.kind);
    if (deliver) return deliver(message);
    return Promise.reject(new Undeliverable('unknown', `this server has no ${message.to.kind}s`));
  }

  /** Writes a dead letter, trims the message and notifies its sender: all of it, or nothing. */
  async #failed(message: OutMessage, error: unknown, attempts: number, trim: Write): Promise<void> {
    const { store, date, notify } = this.#options;
    const { sender, to, body } = message;
    const reason = reasonOf(error);
    const id = this.#attempts.dead(nameOfMessage(message), error);
    const letter: DeadLetter = {
      ...{ actor: actorId(sender.machine, sender.handle), mail: letterText(message), attempts },
      ...{ error: `${reason}: ${messageOf(error)}`, at: Math.round(date()), incident: id },
    };
    const writes: readonly Write[] = [{ type: 'dead letter', letter }, trim];
    const data = { to: { ...to }, event: body, reason, message: messageOf(error) };
    await (notify(message, { type: 'tell.failed', data }, writes) ?? store.commit(writes));
  }
}

function senderOf({ name, handle, key, principal }: HandleRecord): Sender {
  return { machine: name, handle, key, principal };
}

/** Runs a bounded number of jobs at a time, in the order in which they came. */
class Pace {
  #running = 0;
  #waiting: (() => Promise<void>)[] = [];
  #next = 0;

  run(job: () => Promise<void>): void {
    if (this.#running >= MOST_DELIVERING) return void this.#waiting.push(job);
    this.#running += 1;
    void job().finally(() => {
      this.#running -= 1;
      const next = this.#waiting[this.#next];
      if (!next) return;
      this.#next += 1;
      if (this.#next >= MOST_DELIVERING) {
        this.#waiting = this.#waiting.slice(this.#next);
        this.#next = 0;
      }
      this.run(next);
    });
  }
}
