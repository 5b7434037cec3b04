/** The progress of a relayed call: at most one report in each interval, and the last one before the call ends. */
import type { ServerProgress } from '../../client/client-options.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';

export class GatheredProgress {
  readonly #clock: Clock;
  readonly #gatherMs: number;
  readonly #report: (progress: ServerProgress) => void;
  #latest: ServerProgress | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, gatherMs: number, report: (progress: ServerProgress) => void) {
    this.#clock = clock;
    this.#gatherMs = gatherMs;
    this.#report = report;
  }

  /** Reports the progress now, or with a later one at the end of the interval. */
  add(progress: ServerProgress): void {
    if (this.#timer) this.#latest = progress;
    else this.#send(progress);
  }

  /** Reports what is left. */
  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#latest) this.#report(this.#latest);
    this.#latest = undefined;
  }

  #send(progress: ServerProgress): void {
    this.#latest = undefined;
    this.#timer = this.#clock.after(this.#gatherMs, () => {
      this.#timer = undefined;
      if (this.#latest) this.#send(this.#latest);
    });
    this.#report(progress);
  }
}
