/** How much memory one handle takes of the quota of its owner: its entry, its instance, and what repeated calls are told. */
import { type Excess, isExcess, type Quota, type Reservation } from '../quota.ts';

/** Bytes that a handle takes which hibernates, and how many more one that is in memory, beside what is kept of it. Measured with Node 20. */
export const ENTRY_BYTES = 1_600;
export const AWAKE_BYTES = 4_000;
/** Bytes that a key takes, beside its reply. */
const KEY_BYTES = 400;

/** A reply that is kept for one key. */
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

  /** Of a handle that is there already. */
  static of(quota: Quota, principal: string): Footprint {
    return new Footprint(quota.take(principal, ENTRY_BYTES));
  }

  /** Of a new handle, whose input takes so many bytes. */
  static reserve(quota: Quota, principal: string, session: string | undefined, bytes: number): Footprint | Excess {
    const taken = quota.reserve(principal, ENTRY_BYTES + AWAKE_BYTES + bytes, session);
    if (isExcess(taken)) return taken;
    const footprint = new Footprint(taken);
    footprint.#instance = AWAKE_BYTES + bytes;
    return footprint;
  }

  /** The instance is in memory, and what is kept of it takes so many bytes there. @returns why that does not fit; then nothing has changed */
  awake(bytes: number, forced?: 'forced'): Excess | undefined {
    const before = this.#instance;
    this.#instance = AWAKE_BYTES + bytes;
    const excess = this.#resize(forced);
    if (excess) this.#instance = before;
    return excess;
  }

  /** The instance has left memory, and so many bytes of it are kept there by the store. */
  asleep(bytes: number): void {
    this.#instance = bytes;
    this.#resize('forced');
  }

  /**
   * A reply is kept for a key.
   *
   * @param bytes that it takes in memory
   * @param most replies that may be kept at once
   * @returns the keys whose replies are beyond that, the oldest
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
    // What was released is no more: it may leave memory only now.
    if (this.#taken.amount === 0) return undefined;
    return this.#taken.resize(ENTRY_BYTES + this.#instance + this.#replyBytes, forced);
  }
}
