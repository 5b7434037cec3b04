/** The memory of replies to keyed calls that create an instance, in the quota of their caller until they expire. */
import { type Excess, isExcess, type Quota, type Reservation } from '../../core/kernel/quota.ts';
import { KEY_BYTES } from './footprint.ts';

/** A counted reply. Releasing it has no further effect once it has expired. */
export type CountedReply = Pick<Reservation, 'release'>;

/**
 * A reply to an event belongs to the footprint of its handle. The reply to a creation can outlive the handle, whose machine may
 * have a shorter `ttlMs` than `limits.replyTtlMs`, so it counts by itself.
 */
export class CreationReplies {
  readonly #quota: Quota;
  /** In the order of their expiry, because all have the same lifetime. */
  readonly #counted = new Set<{ readonly expires: number; readonly reservation: Reservation }>();

  constructor(quota: Quota) {
    this.#quota = quota;
  }

  /** @param bytes of the reply without its key; 0 if the store does not hold it in memory */
  reserve(principal: string, session: string | undefined, bytes: number, expires: number): CountedReply | Excess {
    const reservation = this.#quota.reserve(principal, KEY_BYTES + bytes, session);
    if (isExcess(reservation)) return reservation;
    const counted = { expires, reservation };
    this.#counted.add(counted);
    return {
      release: () => {
        if (this.#counted.delete(counted)) reservation.release();
      },
    };
  }

  /** Releases the replies that have expired. */
  expire(now: number): void {
    for (const counted of this.#counted) {
      if (counted.expires > now) return;
      this.#counted.delete(counted);
      counted.reservation.release();
    }
  }
}
