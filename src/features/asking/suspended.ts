/** The suspended requests: limited in number, per principal, in memory, and in time. */

import { tooLate, Unanswered } from '../../core/execution/input-errors.ts';
import { jsonLength } from '../../core/execution/size.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import type { Excess, Quota, Reservation } from '../../core/kernel/quota.ts';
import type { Quotas } from '../../core/kernel/server-quotas.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { InteractiveRequestMail } from './input-messages.ts';

/** The reservations of a suspended request in the server's quotas. */
export interface Reserved {
  readonly request: Reservation;
  readonly bytes: Reservation;
}

/** An interactive request that has not ended. */
export interface SuspendedRequest {
  readonly mailbox: Mailbox<InteractiveRequestMail>;
  readonly principal: string;
  /** The round whose answer is expected. */
  round: number;
  /** The time by which its client must return, in milliseconds of the server's clock; undefined while its handler runs. */
  until: number | undefined;
  /** The memory of its data while it is suspended, in characters of JSON. */
  length: number;
  /** Its reservations in the server's quotas while it is suspended. */
  reserved: Reserved | undefined;
  /** The outcome of its last answer, once it is known. */
  ending: 'answered' | 'evicted' | 'task' | undefined;
}

/** Bytes of a suspended handler, without its request and replies. Measured with Node 20. */
const SUSPENDED_BYTES = 16_000;

export class SuspendedRequests {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #quotas: Pick<Quotas, 'suspended' | 'retained'>;
  /** The suspended requests, oldest first. */
  readonly #suspended = new Map<string, SuspendedRequest>();
  /** The same by principal. */
  readonly #of = new Map<string, Set<string>>();
  /** The memory of all suspended requests, in characters of JSON. */
  #length = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock, limits: Limits, quotas: Pick<Quotas, 'suspended' | 'retained'>) {
    this.#clock = clock;
    this.#limits = limits;
    this.#quotas = quotas;
  }

  get size(): number {
    return this.#suspended.size;
  }

  /**
   * Suspends a request. The oldest are evicted to make room: first those of its principal, then of all. If that is not
   * enough, the new one is evicted.
   *
   * @param kept the data to hold in memory, as far as this server knows
   * @param bytes the size of that data and of its request
   */
  add(id: string, live: SuspendedRequest, kept: unknown, bytes: number): void {
    const { askMs, maxParkedBytes } = this.#limits;
    const { suspended, retained } = this.#quotas;
    const { principal } = live;
    this.#makeRoom(suspended, principal, 1);
    const full = this.#makeRoom(retained, principal, SUSPENDED_BYTES + bytes);
    live.until = this.#clock.now() + askMs;
    live.length = jsonLength(kept, maxParkedBytes);
    live.reserved = { request: suspended.take(principal), bytes: retained.take(principal, SUSPENDED_BYTES + bytes) };
    this.#length += live.length;
    this.#suspended.set(id, live);
    const own = this.#of.get(principal) ?? new Set();
    this.#of.set(principal, own.add(id));
    if (full) this.#evict(id, full.message);
    for (const oldest of this.#suspended.keys()) {
      if (this.#length <= maxParkedBytes || oldest === id) break;
      this.#evict(oldest, "the server's option is limits.maxParkedBytes");
    }
    this.#watch();
  }

  /** @returns false if it is not suspended */
  remove(id: string): boolean {
    const live = this.#suspended.get(id);
    if (!live) return false;
    live.until = undefined;
    live.reserved?.request.release();
    live.reserved?.bytes.release();
    this.#length -= live.length;
    this.#suspended.delete(id);
    const own = this.#of.get(live.principal);
    own?.delete(id);
    if (own?.size === 0) this.#of.delete(live.principal);
    return true;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** @returns the exceeded limit if there is no room even after evictions */
  #makeRoom(quota: Quota, principal: string, amount: number): Excess | undefined {
    for (;;) {
      const excess = quota.excess(principal, amount);
      if (!excess) return undefined;
      const own = excess.limit === 'total' ? undefined : this.#of.get(principal)?.values();
      const [oldest] = own ?? (excess.limit === 'total' ? this.#suspended.keys() : []);
      if (oldest === undefined) return excess;
      this.#evict(oldest, excess.message);
    }
  }

  /** Evicts a request. Its client may still return; the request then runs again. */
  #evict(id: string, why: string): void {
    const live = this.#suspended.get(id);
    if (!live) return;
    live.ending = 'evicted';
    live.mailbox.send({
      type: 'expired',
      reason: new Unanswered(`evicted as the oldest of too many open questions: ${why}`),
    });
    // Free its place first, in case its notification throws.
    this.remove(id);
  }

  #watch(): void {
    if (this.#timer) return;
    const [first] = this.#suspended.values();
    if (first?.until === undefined) return;
    this.#timer = this.#clock.after(Math.max(0, Math.ceil(first.until - this.#clock.now())), () => {
      this.#timer = undefined;
      const now = this.#clock.now();
      const reason = tooLate(this.#limits.askMs);
      for (const { mailbox, until } of [...this.#suspended.values()]) {
        if (until === undefined || until > now) break;
        mailbox.send({ type: 'expired', reason });
      }
      this.#watch();
    });
  }
}
