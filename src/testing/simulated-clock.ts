/** Simulated time, which moves only when a test advances it. */
import { type Clock, systemClock, type Timer } from '../core/kernel/clock.ts';

interface SimulatedTimer {
  readonly at: number;
  readonly callback: () => void;
}

/** Promises settle within one turn of the event loop; `soon` takes one more, and so does the work that it starts. */
const TURNS = 3;

/** Resolves when all work has run that waits for no time, input or output: promises, ticks, `clock.soon`. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>((resolve) => systemClock.soon(resolve));
}

const START = Date.UTC(2026, 0, 1);

/**
 * A clock for `createServer({ clock })` and for code under test. Timers run when {@link advance} reaches them, in the order
 * of their times, and of their making where these are equal. `soon` is the real one, the end of the current turn of the event
 * loop: it waits for no time, so a test need not run it.
 *
 * @example
 * const clock = new SimulatedClock();
 * const server = createServer({ name: 'slow', version: '1.0.0', clock });
 * await clock.advance(60_000);
 */
export class SimulatedClock implements Clock {
  /** True: calls that wait a moment for short work wait for a few turns of the event loop instead of for this clock. */
  readonly isManual: true | undefined = true;
  #now: number;
  /** In the order of their making. */
  readonly #timers = new Set<SimulatedTimer>();

  /** @param startMs what `now()` says until the first advance, in milliseconds; default 0 */
  constructor(startMs = 0) {
    this.#now = startMs;
  }

  /** Timers that are running. */
  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now;
  }

  /** Begins at the first second of 2026. */
  date(): number {
    return START + this.#now;
  }

  after(ms: number, callback: () => void): Timer {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Real: a test that waits for something must not end before it. */
  hold(): Timer {
    return systemClock.hold();
  }

  soon(callback: () => void): void {
    systemClock.soon(callback);
  }

  /**
   * Lets time pass. Whatever is under way {@link settled settles} first, and again after each timer that runs: a timer that
   * is started meanwhile runs too, at its own time, if that lies within. Await it.
   *
   * @param ms milliseconds, finite and at least 0
   * @throws {RangeError} for other milliseconds; otherwise what a timer's callback throws
   */
  async advance(ms: number): Promise<void> {
    const until = this.#until(ms);
    await settled();
    for (let due = this.#takeDue(until); due; due = this.#takeDue(until)) {
      due();
      await settled();
    }
    this.#now = Math.max(this.#now, until);
  }

  /** Lets time pass within this turn of the event loop: timers run, promises do not. For code that waits for nothing else. */
  pass(ms: number): void {
    const until = this.#until(ms);
    for (let due = this.#takeDue(until); due; due = this.#takeDue(until)) due();
    this.#now = Math.max(this.#now, until);
  }

  #until(ms: number): number {
    if (Number.isFinite(ms) && ms >= 0) return this.#now + ms;
    throw new RangeError(`expected milliseconds, finite and at least 0, got ${ms}`);
  }

  /** The callback of the first timer that falls due, with the clock set to its time. */
  #takeDue(until: number): (() => void) | undefined {
    let first: SimulatedTimer | undefined;
    for (const timer of this.#timers) if (timer.at <= until && (!first || timer.at < first.at)) first = timer;
    if (!first) return undefined;
    this.#timers.delete(first);
    this.#now = Math.max(this.#now, first.at);
    return first.callback;
  }
}
