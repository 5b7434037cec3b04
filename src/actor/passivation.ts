/** Lets actors that have no mail give back what XState keeps for them: most sessions of a busy host are idle. */
import type { Clock, Timer } from '../clock.ts';

/** What can rest. */
export interface Passivatable {
  /** Asked every {@link REST_MS}. @returns true when nothing has come since it was asked last: it rests, and is not asked again until it wakes */
  rest(): boolean;
}

/** Milliseconds between two rounds: an actor rests after one to two of them without mail. */
const REST_MS = 5_000;

export class Passivator {
  readonly #clock: Clock;
  /** In the order in which they woke, or were last found to have had mail. */
  readonly #awake = new Set<Passivatable>();
  readonly #most: number;
  #crowded = false;
  #timer: Timer | undefined;
  #ended = false;

  /** @param most how many may be awake before the rounds are not waited for */
  constructor(clock: Clock, most: number = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#most = most;
  }

  /** It has begun to use something that it can do without while it rests. */
  woke(sleeper: Passivatable): void {
    if (this.#ended) return;
    this.#awake.add(sleeper);
    this.#wait();
    if (this.#awake.size <= this.#most || this.#crowded) return;
    this.#crowded = true;
    // Not now: whoever woke it is in the middle of its turn, and may be the one that is to rest.
    this.#clock.soon(() => this.#makeRoom());
  }

  /** Those that woke first are asked first; one that has had mail since it was asked last is asked again when its turn comes round. */
  #makeRoom(): void {
    this.#crowded = false;
    let asks = 2 * this.#awake.size;
    for (const sleeper of this.#awake) {
      if (this.#awake.size <= this.#most || asks === 0) return;
      asks -= 1;
      this.#awake.delete(sleeper);
      if (!sleeper.rest()) this.#awake.add(sleeper);
    }
  }

  /** It is gone, and must not be held until the next round: a busy host sees thousands of clients come and go in between. */
  gone(sleeper: Passivatable): void {
    this.#awake.delete(sleeper);
  }

  /** No more rounds: the server has stopped. */
  end(): void {
    this.#ended = true;
    this.#timer?.cancel();
    this.#awake.clear();
  }

  #wait(): void {
    if (this.#timer || this.#ended) return;
    this.#timer = this.#clock.after(REST_MS, () => {
      this.#timer = undefined;
      for (const sleeper of this.#awake) if (sleeper.rest()) this.#awake.delete(sleeper);
      if (this.#awake.size > 0) this.#wait();
    });
  }
}
