/** The memory of one handle within its owner's quota: its record, its instance, and the replies for idempotency keys. */
import { type Excess, isExcess, type Quota, type Reservation } from '../quota.ts';

/** Bytes of a hibernating handle, and the additional bytes of one in memory, without its stored data. Measured with Node 20. */
export const ENTRY_BYTES = 1_600;
export const AWAKE_BYTES = 4_000;
/** Bytes of an idempotency key, without its reply. */
const KEY_BYTES = 400;

/** A stored reply for an idempotency key. */
interface Reply {
  readonly key: string;
  readonly bytes: number;
  readonly expires: number;
}

export class Footprint {
  readonly #taken: Reservation;
  #instance = 0;
  #replies: Reply[] | undefined;
  #replyBytes = 0;

  constructor(taken: Reservation) {
    this.#taken = taken;
  }

  /** Creates the footprint of an existing handle. */
  static of(quota: Quota, principal: string): Footprint {
    return new Footprint(quota.take(principal, ENTRY_BYTES));
  }

  /** Creates the footprint of a new handle whose input has this many bytes. */
  static reserve(quota: Quota, principal: string, session: string | undefined, bytes: number): Footprint | Excess {
    const taken = quota.reserve(principal, ENTRY_BYTES + AWAKE_BYTES + bytes, session);
    if (isExcess(taken)) return taken;
    const footprint = new Footprint(taken);
    footprint.#instance = AWAKE_BYTES + bytes;
    return footprint;
  }

  /**
   * Counts an instance in memory and its stored data.
   *
   * @returns the exceeded limit; in that case nothing changes
   */
  awake(bytes: number, forced?: 'forced'): Excess | undefined {
    const before = this.#instance;
    this.#instance = AWAKE_BYTES + bytes;
    const excess = this.#resize(forced);
    if (excess) this.#instance = before;
    return excess;
  }

  /** Counts an instance that has left memory, and the bytes of it that the store holds in memory. */
  asleep(bytes: number): void {
    this.#instance = bytes;
    this.#resize('forced');
  }

  /**
   * Counts a stored reply.
   *
   * @param bytes its size in memory
   * @param most maximum number of stored replies
   * @returns the keys of the oldest replies beyond the maximum
   */
  replied(key: string, bytes: number, expires: number, now: number, most: number): readonly string[] {
    const kept = (this.#replies ?? []).filter((reply) => reply.key !== key && reply.expires > now);
    kept.push({ key, bytes: KEY_BYTES + bytes, expires });
    const gone = kept.splice(0, Math.max(0, kept.length - most));
    this.#replies = kept;
    this.#replyBytes = kept.reduce((sum, reply) => sum + reply.bytes, 0);
    this.#resize('forced');
    return gone.map((reply) => reply.key);
  }

  release(): void {
    this.#taken.release();
    this.#instance = 0;
    this.#replies = undefined;
    this.#replyBytes = 0;
  }

  #resize(forced: 'forced' | undefined): Excess | undefined {
    // A released handle may leave memory later; it no longer counts.
    if (this.#taken.amount === 0) return undefined;
    return this.#taken.resize(ENTRY_BYTES + this.#instance + this.#replyBytes, forced);
  }
}
