/** Lets actors that have no mail give back what XState keeps for them: most sessions of a busy host are idle. */
import type { Clock } from '../clock.ts';

/** What can rest. */
export interface Sleeper {
  /** Asked every {@link REST_MS}. @returns true when nothing has come since it was asked last: it rests, and is not asked again until it wakes */
  rest(): boolean;
}

/** Milliseconds between two rounds: an actor rests after one to two of them without mail. */
const REST_MS = 5_000;

export class Resting {
  readonly #clock: Clock;
  #awake: Sleeper[] = [];
  #waiting = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It has begun to use something that it can do without while it rests. */
  woke(sleeper: Sleeper): void {
    this.#awake.push(sleeper);
    this.#wait();
  }

  #wait(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    this.#clock.after(REST_MS, () => {
      this.#waiting = false;
      this.#awake = this.#awake.filter((sleeper) => !sleeper.rest());
      if (this.#awake.length > 0) this.#wait();
    });
  }
}
