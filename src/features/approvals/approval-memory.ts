/** Counts the memory of approvals that are in no durable store against the limits of their callers. */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { Quota, Reservation } from '../../core/kernel/quota.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import type { StoredApproval } from './approval-record.ts';

/** Milliseconds between two looks for approvals that the store has deleted. */
const SWEEP_MS = 60_000;

export class ApprovalMemory {
  readonly #retained: Quota;
  readonly #clock: Clock;
  readonly #date: () => number;
  readonly #held = new Map<string, { readonly memory: Reservation; until: number }>();
  #sweep: Timer | undefined;

  /** @param date milliseconds since 1970, which do not go back */
  constructor(retained: Quota, clock: Clock, date: () => number) {
    this.#retained = retained;
    this.#clock = clock;
    this.#date = date;
  }

  /** Counts a new approval. @returns the limit that it would exceed; then nothing is counted */
  hold(approval: StoredApproval, session: string | undefined): string | undefined {
    const memory = this.#retained.reserve(approval.principal, heapBytes(approval), session);
    if ('message' in memory) return memory.message;
    this.#held.set(approval.id, { memory, until: Number.POSITIVE_INFINITY });
    return undefined;
  }

  free(id: string): void {
    this.#held.get(id)?.memory.release();
    this.#held.delete(id);
  }

  /** An approval has ended: the store deletes it then. @param until milliseconds since 1970 */
  ended(id: string, until: number): void {
    const held = this.#held.get(id);
    if (!held) return;
    held.until = until;
    this.#sweepLater();
  }

  stop(): void {
    this.#sweep?.cancel();
    for (const { memory } of this.#held.values()) memory.release();
    this.#held.clear();
  }

  #sweepLater(): void {
    this.#sweep ??= this.#clock.after(SWEEP_MS, () => {
      this.#sweep = undefined;
      const now = this.#date();
      let waiting = false;
      for (const [id, { until }] of this.#held)
        if (until <= now) this.free(id);
        else waiting ||= until < Number.POSITIVE_INFINITY;
      if (waiting) this.#sweepLater();
    });
  }
}
