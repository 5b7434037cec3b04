/** The calls that wait for a store: their limits, the size of a group, and those who wait until calls have ended. */
import { StoreError } from './store.ts';
import type { StoreLimits } from './store-limits.ts';

/** This many may wait although the store has caught up, so that it works while a job prepares its next slice. */
export const FEW_WAITING = 32;

/**
 * The error for a call beyond the limits; undefined if it may wait. Clients see it, so it does not name the store.
 *
 * @param waiting number and length of the calls that wait
 */
export function refusedBy(
  { maxWaiting, maxWaitingLength }: StoreLimits,
  waiting: { readonly size: number; readonly length: number },
  length: number,
): StoreError | undefined {
  if (waiting.size >= maxWaiting) return busy('maxWaiting', maxWaiting, 'calls');
  if (length > 0 && waiting.size > 0 && waiting.length + length > maxWaitingLength)
    return busy('maxWaitingLength', maxWaitingLength, 'characters');
  return undefined;
}

function busy(name: string, most: number, what: string): StoreError {
  return new StoreError('busy', `${most} ${what} are waiting for the store (${name}). Retry when some have finished`);
}

/** Number of jobs, from the first on, that one transaction may have; a single job may exceed its limits. */
export function groupSize<J extends { readonly length: number }>(
  { maxGroupWrites, maxGroupLength }: StoreLimits,
  jobs: readonly J[],
  writesOf: (job: J) => number,
): number {
  let [writes, length, count] = [0, 0, 0];
  for (const job of jobs) {
    writes += writesOf(job);
    length += job.length;
    if (count > 0 && (writes > maxGroupWrites || length > maxGroupLength)) break;
    count += 1;
  }
  return count;
}

/** Promises that resolve when the call with a number, or a later one, has ended. */
export class EndedCalls {
  /** The lowest number first. */
  readonly #until: { readonly number: number; resolve(): void }[] = [];

  when(number: number): Promise<void> {
    return new Promise((resolve) => {
      // Nearly always the newest is the last one.
      let place = this.#until.length;
      while (place > 0 && (this.#until[place - 1]?.number ?? 0) > number) place -= 1;
      this.#until.splice(place, 0, { number, resolve });
    });
  }

  /** The call with this number has ended. */
  reached(number: number): void {
    for (let [next] = this.#until; next && next.number <= number; [next] = this.#until) {
      this.#until.shift();
      next.resolve();
    }
  }
}
