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
  /**
   * Whole milliseconds since 1970: for what must mean the same to another process. By the wall clock when this one began, and
   * steady from then on: a jump of the wall clock, by hand or by NTP, expires nothing before its time (docs/adr/0015).
   */
  date(): number;
  /** Runs `callback` once, `ms` milliseconds from now (0 to 2^31-1). The timer does not keep the process alive. */
  after(ms: number, callback: () => void): Timer;
  /** Keeps the process alive until it is cancelled; for what must end well although nothing else is left to wait for. */
  hold(): Timer;
  /** Runs `callback` once the current turn of the event loop is over. */
  soon(callback: () => void): void;
}

/** Milliseconds that work over many may take of one turn of the event loop. */
const SLICE_MS = 2;
/** Most steps in one slice: what a step leaves for the end of the turn is not measured, so it is counted. */
const SLICE_STEPS = 256;

/**
 * The share of one turn of the event loop that work over many things may take. Whoever has such work makes a slice, does a step,
 * asks whether the slice is over, and does the rest after {@link Clock.soon}: other work runs in between.
 */
export class TimeSlice {
  readonly #clock: Clock;
  readonly #end: number;
  #steps = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#end = clock.now() + SLICE_MS;
  }

  /** Asked after each step. @returns whether the rest must wait for another turn */
  over(): boolean {
    this.#steps += 1;
    return this.#steps >= SLICE_STEPS || this.#clock.now() >= this.#end;
  }
}

/** Does the same with each, in slices: others have their turn in between. Whatever is added meanwhile is the iterator's to decide. */
export function inSlices<T>(clock: Clock, items: Iterator<T>, act: (item: T) => void, done: () => void): void {
  const slice = new TimeSlice(clock);
  for (let next = items.next(); !next.done; next = items.next()) {
    act(next.value);
    if (slice.over()) return clock.soon(() => inSlices(clock, items, act, done));
  }
  done();
}

/** A time in milliseconds since 1970, in the words of ISO 8601. */
export function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => Math.floor(performance.timeOrigin + performance.now()),
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
 * Milliseconds since 1970: by the wall clock as it stands now, and by monotonic time from then on. While the process lives an hour
 * is an hour, whatever becomes of the wall clock.
 */
export function steadyDate(clock: Clock): () => number {
  const start = clock.date() - clock.now();
  return () => start + clock.now();
}

/** Runs `callback` once, `ms` milliseconds from now: any number of them, also more than a timer can wait. */
export function afterAny(clock: Clock, ms: number, callback: () => void): Timer {
  const due = clock.now() + ms;
  const wait = (): Timer => {
    const left = Math.max(0, due - clock.now());
    if (left <= LONGEST_TIMER_MS) return clock.after(left, callback);
    return clock.after(LONGEST_TIMER_MS, () => {
      timer = wait();
    });
  };
  let timer = wait();
  return { cancel: () => timer.cancel() };
}

/** Timers as XState takes them. */
export interface XStateTimers {
  setTimeout(callback: () => void, ms: number): Timer;
  clearTimeout(timer: Timer | undefined): void;
}

/** The clock as XState takes one: for the delays of an author's statechart, of any length. */
export function timersOf(clock: Clock): XStateTimers {
  return {
    setTimeout: (callback, ms) => afterAny(clock, ms, callback),
    clearTimeout: (timer) => timer?.cancel(),
  };
}
