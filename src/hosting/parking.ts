/** Where conversations wait for their clients: bounded in number, for each principal, in what is kept for them, and in time. */
import type { Actor } from '../actors/actor.ts';
import { Unanswered } from '../asking/errors.ts';
import type { Clock, Timer } from '../clock.ts';
import type { ConversationMail } from '../messages/asking.ts';
import type { Limits } from '../options.ts';
import { ANONYMOUS } from '../quota.ts';
import { jsonLength } from '../results/size.ts';

/** One conversation that is not over. */
export interface Live {
  readonly actor: Actor<ConversationMail>;
  readonly principal: string;
  /** The round whose answer is awaited. */
  round: number;
  /** When its client must be back, in milliseconds of the server's clock; undefined while its handler runs. */
  until: number | undefined;
  /** What is kept for it while it waits, in characters of JSON. */
  bytes: number;
  /** What became of its last answer, once that is known. */
  kept: 'answered' | 'gave way' | 'task' | undefined;
}

export class Parking {
  readonly #clock: Clock;
  readonly #limits: Limits;
  /** Those that wait, the oldest first. */
  readonly #parked = new Map<string, Live>();
  /** The same by principal, where somebody is known. */
  readonly #of = new Map<string, Set<string>>();
  /** What is kept for all that wait, in characters of JSON. */
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get size(): number {
    return this.#parked.size;
  }

  /** @param kept what is kept in memory for it, as far as this server knows */
  add(id: string, live: Live, kept: unknown): void {
    const { askMs, maxParkedBytes } = this.#limits;
    live.until = this.#clock.now() + askMs;
    live.bytes = jsonLength(kept, maxParkedBytes);
    this.#bytes += live.bytes;
    this.#parked.set(id, live);
    this.#makeRoom(id, live.principal);
    this.#watch();
  }

  /** @returns false where it does not wait */
  remove(id: string): boolean {
    const live = this.#parked.get(id);
    if (!live) return false;
    live.until = undefined;
    this.#bytes -= live.bytes;
    this.#parked.delete(id);
    const own = this.#of.get(live.principal);
    own?.delete(id);
    if (own?.size === 0) this.#of.delete(live.principal);
    return true;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** The oldest give way: of this principal first, then of all. */
  #makeRoom(id: string, principal: string): void {
    const { maxParked, maxParkedPerPrincipal, maxParkedBytes } = this.#limits;
    if (principal !== ANONYMOUS) {
      const own = this.#of.get(principal) ?? new Set();
      this.#of.set(principal, own.add(id));
      if (own.size > maxParkedPerPrincipal) this.#evict(own.values().next().value, 'maxParkedPerPrincipal');
    }
    if (this.#parked.size > maxParked) this.#evict(this.#parked.keys().next().value, 'maxParked');
    if (this.#bytes <= maxParkedBytes) return;
    for (const oldest of [...this.#parked.keys()]) {
      if (this.#bytes <= maxParkedBytes || oldest === id) break;
      this.#evict(oldest, 'maxParkedBytes');
    }
  }

  /** Its client may come back still: then the request is run anew. */
  #evict(id: string | undefined, limit: 'maxParked' | 'maxParkedPerPrincipal' | 'maxParkedBytes'): void {
    const live = id === undefined ? undefined : this.#parked.get(id);
    if (!live) return;
    live.kept = 'gave way';
    const reason = new Unanswered(`the oldest of too many open questions (the server's option is limits.${limit})`);
    live.actor.mailbox.send({ type: 'expired', reason });
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
