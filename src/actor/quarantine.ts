/** The actors of one server that crashed more often than their policy bears: each is set aside until it goes, or an operator lets it serve again. */
import type { Clock } from '../clock.ts';
import type { ActorKind } from '../inspection/records.ts';

/** An actor that serves no more. */
export interface Quarantined {
  readonly address: string;
  readonly kind: ActorKind;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** What it crashed with last. */
  readonly why: string;
}

interface Kept extends Quarantined {
  release(): void;
}

/** No bound of its own: there is at most one entry for each actor that lives. */
export class Quarantine {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(address: string, kind: ActorKind, why: string, release: () => void): void {
    this.#kept.set(address, { address, kind, since: this.#clock.date(), why, release });
  }

  /** The actor is gone. */
  forget(address: string): void {
    this.#kept.delete(address);
  }

  /** Lets an actor serve again, as if it had never crashed. @returns false when none of that address is set aside */
  release(address: string): boolean {
    const kept = this.#kept.get(address);
    if (!kept) return false;
    this.#kept.delete(address);
    kept.release();
    return true;
  }

  /** Those that are set aside now, the first first. */
  all(): readonly Quarantined[] {
    return [...this.#kept.values()].map(({ address, kind, since, why }) => ({ address, kind, since, why }));
  }
}
