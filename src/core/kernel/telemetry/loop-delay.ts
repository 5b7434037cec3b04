/** Measures how late the event loop runs a timer, while something reads the metrics. */
import type { Clock, Timer } from '../clock.ts';
import type { Metrics } from './metrics.ts';

/** Milliseconds between two measurements. */
const EVERY_MS = 100;

export class LoopDelay {
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  #timer: Timer | undefined;

  constructor(clock: Clock, metrics: Metrics) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** Measures until {@link end}. Idempotent. */
  begin(): void {
    if (!this.#timer) this.#next();
  }

  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #next(): void {
    const due = this.#clock.now() + EVERY_MS;
    this.#timer = this.#clock.after(EVERY_MS, () => {
      this.#metrics.looped(Math.max(0, this.#clock.now() - due));
      this.#next();
    });
  }
}
