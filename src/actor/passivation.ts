/** Passivation: releases the memory that XState uses for idle actors. Most sessions of a busy host are idle. */
import type { Clock, Timer } from '../clock.ts';

/** Something that can be passivated. */
export interface Passivatable {
  /**
   * Called every {@link REST_MS}. @returns true if no message has arrived since the last call: the object is then
   * passive, and this is not called until it is active again
   */
  rest(): boolean;
}

/** Milliseconds between two rounds: an actor is passivated after one to two rounds without messages. */
const REST_MS = 5_000;

export class Passivator {
  readonly #clock: Clock;
  /** In the order in which they became active, or were last found active. */
  readonly #awake = new Set<Passivatable>();
  readonly #most: number;
  #crowded = false;
  #timer: Timer | undefined;
  #ended = false;

  /** @param most number of active objects above which passivation does not wait for the next round */
  constructor(clock: Clock, most: number = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Called when an object becomes active. */
  woke(sleeper: Passivatable): void {
    if (this.#ended) return;
    this.#awake.add(sleeper);
    this.#wait();
    if (this.#awake.size <= this.#most || this.#crowded) return;
    this.#crowded = true;
    // Not now: the caller is in a turn, and may itself be the object to passivate.
    this.#clock.soon(() => this.#makeRoom());
  }

  /** Checks the longest active objects first. An object that has received messages moves to the end. */
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

  /**
   * Removes an object at once and not in the next round: thousands of clients of a busy host may come and go in
   * between.
   */
  gone(sleeper: Passivatable): void {
    this.#awake.delete(sleeper);
  }

  /** Stops the rounds, because the server has stopped. */
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
