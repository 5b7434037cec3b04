/** The pace of jobs that write to the store for thousands of clients: a few writes at a time, as fast as the store takes them. */
import type { Clock, Pace } from '../kernel/clock.ts';
import type { Store } from './store.ts';

/** Maximum number of steps in one slice: another client's write waits for those of two slices at most. */
const SLICE_STEPS = 32;
/** Maximum time in milliseconds for which a slice waits for the store: a slow disk slows a job down, and does not stop it. */
const MAX_WAIT_MS = 10;

export class StorePace implements Pace {
  readonly sliceSteps?: number;
  readonly #clock: Clock;
  readonly #store: Pick<Store, 'caughtUp' | 'durable'>;

  constructor(clock: Clock, store: Pick<Store, 'caughtUp' | 'durable'>) {
    this.#clock = clock;
    this.#store = store;
    if (store.durable) this.sliceSteps = SLICE_STEPS;
  }

  now(): number {
    return this.#clock.now();
  }

  soon(callback: () => void): void {
    this.#clock.soon(() => {
      // Asked after the turn of the slice, because its writes reach the store at the end of that turn.
      const caughtUp = this.#store.caughtUp();
      if (caughtUp) this.#when(caughtUp, callback);
      else callback();
    });
  }

  #when(caughtUp: Promise<void>, callback: () => void): void {
    let begun = false;
    const begin = (): void => {
      if (begun) return;
      begun = true;
      late.cancel();
      callback();
    };
    const late = this.#clock.after(MAX_WAIT_MS, begin);
    void caughtUp.then(() => this.#clock.soon(begin));
  }
}
