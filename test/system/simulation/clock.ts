/** The time of one generation of the server: when its process is killed, none of its timers fires any more. */

import type { Clock, Timer } from '../../../src/index.ts';
import type { SimulatedClock } from '../../../src/testing/testing.ts';

const NOTHING: Timer = { cancel() {} };

export class GenerationClock implements Clock {
  readonly #world: SimulatedClock;
  readonly #started: number;
  readonly #skewMs: number;
  #alive = true;

  /** @param skewMs how wrong the wall clock of this process is */
  constructor(world: SimulatedClock, skewMs: number) {
    this.#world = world;
    this.#started = world.now();
    this.#skewMs = skewMs;
  }

  /** False from the moment in which its process is killed. */
  get alive(): boolean {
    return this.#alive;
  }

  kill(): void {
    this.#alive = false;
  }

  /** Its process is only to be cleared away: what it waited for would not let it go. */
  revive(): void {
    this.#alive = true;
  }

  /** Each process counts from its own start: who keeps a monotonic time across a restart is wrong, and is to be found. */
  now(): number {
    return this.#world.now() - this.#started;
  }

  date(): number {
    return this.#world.date() + this.#skewMs;
  }

  after(ms: number, callback: () => void): Timer {
    if (!this.#alive) return NOTHING;
    return this.#world.after(ms, () => this.#alive && callback());
  }

  hold(): Timer {
    return NOTHING;
  }

  soon(callback: () => void): void {
    this.#world.soon(() => this.#alive && callback());
  }
}
