/**
 * The quarantined actors of one server: each crashed more often than its policy allows, and rejects messages until it
 * stops or an operator releases it.
 */
import type { Clock } from './clock.ts';
import type { ActorKind } from './inspection/records.ts';
import type { Metrics } from './telemetry/metrics.ts';

/** A quarantined actor. */
export interface Quarantined {
  readonly address: string;
  readonly kind: ActorKind;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Its last error. */
  readonly why: string;
}

interface QuarantinedEntry extends Quarantined {
  release(): void;
}

/** Needs no limit: there is at most one entry for each existing actor. */
export class Quarantine {
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #kept = new Map<string, QuarantinedEntry>();

  constructor(clock: Clock, metrics: Metrics) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  add(address: string, kind: ActorKind, why: string, release: () => void): void {
    this.#metrics.quarantined();
    this.#kept.set(address, { address, kind, since: this.#clock.date(), why, release });
  }

  /** Removes an actor that has stopped. */
  forget(address: string): void {
    this.#kept.delete(address);
  }

  /** Releases an actor and resets its crash history. @returns false if no actor of that address is quarantined */
  release(address: string): boolean {
    const kept = this.#kept.get(address);
    if (!kept) return false;
    this.#kept.delete(address);
    kept.release();
    return true;
  }

  /** The quarantined actors, oldest first. */
  all(): readonly Quarantined[] {
    return [...this.#kept.values()].map(({ address, kind, since, why }) => ({ address, kind, since, why }));
  }
}
