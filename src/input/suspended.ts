/** Where conversations wait for their clients: bounded in number, for each principal, in what is kept for them, and in time. */
import type { Actor } from '../actor/actor.ts';
import type { Clock, Timer } from '../clock.ts';
import type { Limits } from '../limits.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { InteractiveRequestMail } from '../messages/input-messages.ts';
import type { Excess, Quota, Reservation } from '../quota.ts';
import { jsonLength } from '../results/size.ts';
import type { Quotas } from '../server-quotas.ts';
import { Unanswered } from './input-errors.ts';

/** One conversation that is not over. */
export interface SuspendedRequest {
  readonly actor: Actor<InteractiveRequestMail>;
  readonly principal: string;
  /** The round whose answer is awaited. */
  round: number;
  /** When its client must be back, in milliseconds of the server's clock; undefined while its handler runs. */
  until: number | undefined;
  /** That it began with: it stays for as long as the handler. */
  readonly request: ActiveRequest;
  /** What is kept for it while it waits, in characters of JSON. */
  length: number;
  /** What it takes of the server's quotas while it waits. */
  place: { readonly parked: Reservation; readonly bytes: Reservation } | undefined;
  /** What became of its last answer, once that is known. */
  kept: 'answered' | 'gave way' | 'task' | undefined;
}

/** Bytes that a handler takes which waits, beside its request and what was replied. Measured with Node 20. */
const PARKED_BYTES = 16_000;

export class SuspendedRequests {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #quotas: Pick<Quotas, 'parked' | 'retained'>;
  /** Those that wait, the oldest first. */
  readonly #parked = new Map<string, SuspendedRequest>();
  /** The same by principal. */
  readonly #of = new Map<string, Set<string>>();
  /** What is kept for all that wait, in characters of JSON. */
  #length = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock, limits: Limits, quotas: Pick<Quotas, 'parked' | 'retained'>) {
    this.#clock = clock;
    this.#limits = limits;
    this.#quotas = quotas;
  }

  get size(): number {
    return this.#parked.size;
  }

  /**
   * The oldest give way to it: of its principal first, then of all. Where that makes no room, it gives way itself.
   *
   * @param kept what is kept in memory for it, as far as this server knows
   * @param bytes that this takes, and its request
   */
  add(id: string, live: SuspendedRequest, kept: unknown, bytes: number): void {
    const { askMs, maxParkedBytes } = this.#limits;
    const { parked, retained } = this.#quotas;
    const { principal } = live;
    this.#makeRoom(parked, principal, 1);
    const full = this.#makeRoom(retained, principal, PARKED_BYTES + bytes);
    live.until = this.#clock.now() + askMs;
    live.length = jsonLength(kept, maxParkedBytes);
    live.place = { parked: parked.take(principal), bytes: retained.take(principal, PARKED_BYTES + bytes) };
    this.#length += live.length;
    this.#parked.set(id, live);
    const own = this.#of.get(principal) ?? new Set();
    this.#of.set(principal, own.add(id));
    if (full) this.#evict(id, full.message);
    for (const oldest of this.#parked.keys()) {
      if (this.#length <= maxParkedBytes || oldest === id) break;
      this.#evict(oldest, "the server's option is limits.maxParkedBytes");
    }
    this.#watch();
  }

  /** @returns false where it does not wait */
  remove(id: string): boolean {
    const live = this.#parked.get(id);
    if (!live) return false;
    live.until = undefined;
    live.place?.parked.release();
    live.place?.bytes.release();
    this.#length -= live.length;
    this.#parked.delete(id);
    const own = this.#of.get(live.principal);
    own?.delete(id);
    if (own?.size === 0) this.#of.delete(live.principal);
    return true;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** @returns why there is no room, though nobody is left who could give way */
  #makeRoom(quota: Quota, principal: string, amount: number): Excess | undefined {
    for (;;) {
      const excess = quota.excess(principal, amount);
      if (!excess) return undefined;
      const own = excess.limit === 'total' ? undefined : this.#of.get(principal)?.values();
      const [oldest] = own ?? (excess.limit === 'total' ? this.#parked.keys() : []);
      if (oldest === undefined) return excess;
      this.#evict(oldest, excess.message);
    }
  }

  /** Its client may come back still: then the request is run anew. */
  #evict(id: string, why: string): void {
    const live = this.#parked.get(id);
    if (!live) return;
    live.kept = 'gave way';
    live.actor.mailbox.send({
      type: 'expired',
      reason: new Unanswered(`the oldest of too many open questions: ${why}`),
    });
    // Its place is free, even should it fail to say so.
    this.remove(id);
  }

  #watch(): void {
    if (this.#timer) return;
    const [first] = this.#parked.values();
    if (first?.until === undefined) return;
    this.#timer = this.#clock.after(Math.max(0, Math.ceil(first.until - this.#clock.now())), () => {
      this.#timer = undefined;
      const now = this.#clock.now();
      const reason = tooLate(this.#limits.askMs);
      for (const { actor, until } of [...this.#parked.values()]) {
        if (until === undefined || until > now) break;
        actor.mailbox.send({ type: 'expired', reason });
      }
      this.#watch();
    });
  }
}

export function tooLate(askMs: number): Unanswered {
  return new Unanswered(`nobody answered within ${askMs} ms (the server's option is limits.askMs)`);
}
