/**
 * The memory of one handle within its owner's quota: its record, its instance, the replies for idempotency keys, and the
 * results of the steps of its invocations.
 */
import { type Excess, isExcess, type Quota, type Reservation } from '../../core/kernel/quota.ts';

/** Bytes of a hibernating handle, and the additional bytes of one in memory, without its stored data. Measured with Node 20. */
const ENTRY_BYTES = 1_600;
const AWAKE_BYTES = 4_000;
/** Bytes of an idempotency key, without its reply. */
export const KEY_BYTES = 400;

/** A stored reply for an idempotency key. */
interface Reply {
  readonly key: string;
  readonly bytes: number;
  readonly expires: number;
}

/** New replies for idempotency keys, without the bytes of the keys. */
export interface NewReplies {
  readonly added: readonly Reply[];
  readonly now: number;
  /** Maximum number of stored replies. */
  readonly most: number;
  /** Replies that expire later are kept beyond the maximum, in milliseconds since 1970. */
  readonly keptAfter: number;
}

const NO_REPLIES: NewReplies = { added: [], now: 0, most: 0, keptAfter: 0 };

export class Footprint {
  readonly #reservation: Reservation;
  #instance = 0;
  #replies: Reply[] | undefined;
  #replyBytes = 0;
  /** Bytes of the results of steps, by the stream of their invocation. */
  #steps: Map<string, number> | undefined;
  /** Bytes of the messages that wait in its outbox. */
  #out = 0;

  constructor(reservation: Reservation) {
    this.#reservation = reservation;
  }

  /** Creates the footprint of an existing handle. */
  static of(quota: Quota, principal: string): Footprint {
    return new Footprint(quota.take(principal, ENTRY_BYTES));
  }

  /** Creates the footprint of a new handle whose input has this many bytes. */
  static reserve(quota: Quota, principal: string, session: string | undefined, bytes: number): Footprint | Excess {
    const reservation = quota.reserve(principal, ENTRY_BYTES + AWAKE_BYTES + bytes, session);
    if (isExcess(reservation)) return reservation;
    const footprint = new Footprint(reservation);
    footprint.#instance = AWAKE_BYTES + bytes;
    return footprint;
  }

  /** Counts an instance in memory and its stored data, for which no client can be rejected. */
  force(bytes: number): void {
    this.#instance = AWAKE_BYTES + bytes;
    this.#resize('forced');
  }

  /**
   * Counts an instance in memory, its stored data, and the replies that are stored together with it.
   *
   * @returns the keys of the oldest replies beyond the maximum; or the exceeded limit, and then nothing changes
   */
  loaded(
    bytes: number,
    { added, now, most, keptAfter }: NewReplies = NO_REPLIES,
  ): { readonly evicted: readonly string[] } | Excess {
    const before = { instance: this.#instance, replies: this.#replies, replyBytes: this.#replyBytes };
    this.#instance = AWAKE_BYTES + bytes;
    let evicted: readonly string[] = [];
    if (added.length > 0) {
      const keys = new Set(added.map(({ key }) => key));
      const stored = (this.#replies ?? []).filter(({ key, expires }) => !keys.has(key) && expires > now);
      stored.push(...added.map((reply) => ({ ...reply, bytes: KEY_BYTES + reply.bytes })));
      const kept = stored.findIndex(({ expires }) => expires > keptAfter);
      const old = kept < 0 ? stored.length : kept;
      evicted = stored.splice(0, Math.max(0, Math.min(old, stored.length - most))).map(({ key }) => key);
      this.#replies = stored;
      this.#replyBytes = stored.reduce((sum, reply) => sum + reply.bytes, 0);
    }
    const excess = this.#resize(undefined);
    if (!excess) return { evicted };
    this.#instance = before.instance;
    this.#replies = before.replies;
    this.#replyBytes = before.replyBytes;
    return excess;
  }

  /**
   * Counts the results of the steps of one invocation: all of them, with a new one.
   *
   * @returns the exceeded limit, and then nothing changes
   */
  steps(stream: string, bytes: number, forced?: 'forced'): Excess | undefined {
    const before = this.#steps?.get(stream) ?? 0;
    this.#steps ??= new Map();
    this.#steps.set(stream, bytes);
    const excess = this.#resize(forced);
    if (excess) this.#steps.set(stream, before);
    return excess;
  }

  /**
   * Counts the messages that wait in the outbox.
   *
   * @returns the exceeded limit, and then nothing changes
   */
  messages(bytes: number, forced?: 'forced'): Excess | undefined {
    const before = this.#out;
    this.#out = bytes;
    const excess = this.#resize(forced);
    if (excess) this.#out = before;
    return excess;
  }

  /** The invocation of these steps has ended, and its log is erased. */
  stepsErased(stream: string): void {
    if (this.#steps?.delete(stream)) this.#resize('forced');
  }

  /**
   * Counts an instance that has left memory.
   *
   * @param bytes its stored data, if the store holds that in memory, together with the results of steps; undefined if the
   *   store is durable
   */
  unloaded(bytes: number | undefined): void {
    this.#instance = bytes ?? 0;
    if (bytes === undefined) this.#steps = undefined;
    this.#resize('forced');
  }

  release(): void {
    this.#reservation.release();
    this.#instance = 0;
    this.#replies = undefined;
    this.#replyBytes = 0;
    this.#steps = undefined;
    this.#out = 0;
  }

  #resize(forced: 'forced' | undefined): Excess | undefined {
    // A released handle may leave memory later; it no longer counts.
    if (this.#reservation.amount === 0) return undefined;
    let steps = 0;
    for (const bytes of this.#steps?.values() ?? []) steps += bytes;
    return this.#reservation.resize(ENTRY_BYTES + this.#instance + this.#replyBytes + steps + this.#out, forced);
  }
}
