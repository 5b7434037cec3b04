/** The port through which everything that waits reads the time: the real clock, and the only file that may touch timers. */

/** The longest time that a timer can wait, in milliseconds: Node makes more of it one. */
export const LONGEST_TIMER_MS = 2_147_483_647;

/** A running timer. */
export interface Timer {
  /** Stops it; stopping twice, or after it fired, does nothing. */
  cancel(): void;
}

/** Time, injected. Milliseconds, monotonic: a change of the wall clock moves nothing. */
export interface Clock {
  /** Milliseconds since an arbitrary start. */
  now(): number;
  /** Milliseconds since 1970, by the wall clock: for what must mean the same to another process. */
  date(): number;
  /** Runs `callback` once, `ms` milliseconds from now (0 to 2^31-1). The timer does not keep the process alive. */
  after(ms: number, callback: () => void): Timer;
  /** Keeps the process alive until it is cancelled; for what must end well although nothing else is left to wait for. */
  hold(): Timer;
  /** Runs `callback` once the current turn of the event loop is over. */
  soon(callback: () => void): void;
}

/** A time in milliseconds since 1970, in the words of ISO 8601. */
export function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  hold() {
    const timer = setInterval(() => {}, LONGEST_TIMER_MS);
    return { cancel: () => clearInterval(timer) };
  },
  soon(callback) {
    setImmediate(callback);
  },
};

/**
 * The clock as XState takes one: for the delays of an author's statechart. A delay that is longer than a timer can wait ends
 * after {@link LONGEST_TIMER_MS}.
 */
export function timersOf(clock: Clock) {
  return {
    setTimeout: (callback: () => void, ms: number): Timer => clock.after(Math.min(ms, LONGEST_TIMER_MS), callback),
    clearTimeout: (timer: Timer | undefined): void => timer?.cancel(),
  };
}
