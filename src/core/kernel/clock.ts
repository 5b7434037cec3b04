/** The port to time: the clock interface, the real clock, and helpers. The only file that may use timers. */

/** The longest delay of a timer, in milliseconds. Node turns a longer one into 1 ms. */
export const LONGEST_TIMER_MS = 2_147_483_647;

/** A running timer. */
export interface Timer {
  /** Stops the timer. Has no effect if it was stopped or has fired. */
  cancel(): void;
}

/** Injected time. Milliseconds, monotonic: changes of the wall clock have no effect. */
export interface Clock {
  /** Milliseconds since an arbitrary start. */
  now(): number;
  /**
   * Whole milliseconds since 1970, for times that other processes read. Taken from the wall clock when this clock was
   * created, and monotonic from then on: if the wall clock jumps, by hand or by NTP, nothing expires early
   * (docs/adr/0015).
   */
  date(): number;
  /** Milliseconds since 1970 by the wall clock, which jumps. Absent: {@link Clock.date} is the only date. */
  wall?(): number;
  /** True if dates pass as monotonic time does, although they may begin later, as those of a database. */
  readonly dateIsSteady?: true;
  /** True if time passes only when a test moves it. Nothing that the test waits for may wait for this clock. */
  readonly isManual?: true | undefined;
  /** Runs `callback` once, `ms` milliseconds from now (0 to 2^31-1). The timer does not keep the process alive. */
  after(ms: number, callback: () => void): Timer;
  /**
   * Keeps the process alive until cancelled, for work that must finish although the event loop has nothing else to wait
   * for.
   */
  hold(): Timer;
  /** Runs `callback` after the current turn of the event loop. */
  soon(callback: () => void): void;
}

/** Resolves after `ms` milliseconds, or when the signal aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.after(ms, end);
    signal?.addEventListener('abort', end);
  });
}

/** @throws what the promise throws; the error of `late` after `ms` milliseconds, and that of `aborted` when the signal aborts */
export function within<T>(
  promise: Promise<T>,
  clock: Clock,
  ms: number,
  late: () => Error,
  signal?: AbortSignal,
  aborted: () => Error = late,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      timer.cancel();
      signal?.removeEventListener('abort', abort);
      act();
    };
    const abort = (): void => settle(() => reject(aborted()));
    const timer = clock.after(ms, () => settle(() => reject(late())));
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    promise.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    );
  });
}

/** The pace of a long job: a clock, or something that starts slices later than a clock does. */
export interface Pace extends Pick<Clock, 'now' | 'soon'> {
  /** Maximum number of steps in one slice, if fewer than usual. */
  readonly sliceSteps?: number;
}

/** Milliseconds that a long job may take in one turn of the event loop. */
const SLICE_MS = 2;
/** Maximum number of steps in one slice. Work that a step defers to the end of the turn is not measured, so steps are counted. */
const SLICE_STEPS = 256;

/**
 * The share of a long job in one turn of the event loop. Create a slice, do one step, check `over()`, and continue
 * after {@link Clock.soon}: other work runs in between.
 */
export class TimeSlice {
  readonly #pace: Pace;
  readonly #end: number;
  #left: number;

  constructor(pace: Pace) {
    this.#pace = pace;
    this.#end = pace.now() + SLICE_MS;
    this.#left = pace.sliceSteps ?? SLICE_STEPS;
  }

  /** Call after each step. @returns whether the rest must wait for another turn */
  over(): boolean {
    this.#left -= 1;
    return this.#left <= 0 || this.#pace.now() >= this.#end;
  }
}

/**
 * Calls `act` for each item, in slices, so that other work runs in between. The iterator decides about items that are
 * added meanwhile.
 */
export function inSlices<T>(pace: Pace, items: Iterator<T>, act: (item: T) => void, done: () => void): void {
  const slice = new TimeSlice(pace);
  for (let next = items.next(); !next.done; next = items.next()) {
    act(next.value);
    if (slice.over()) return pace.soon(() => inSlices(pace, items, act, done));
  }
  done();
}

/** The same as {@link inSlices}. Resolves after the last item. */
export function eachInSlices<T>(pace: Pace, items: Iterable<T>, act: (item: T) => void): Promise<void> {
  return new Promise((resolve) => inSlices(pace, items[Symbol.iterator](), act, resolve));
}

/**
 * Processes items in order: at once while the slice of this turn of the event loop has time, and the rest in later
 * turns. Its owner bounds how many wait.
 */
export class SlicedQueue<T extends NonNullable<unknown>> {
  readonly #pace: Pace;
  readonly #act: (item: T) => void;
  /** The slice of this turn; undefined before the first item. */
  #slice: TimeSlice | undefined;
  /** True once the slice of this turn is over: items wait for later turns. */
  #waits = false;
  /** Waiting items, the oldest first, up to `#next` already processed; and the items that arrived after these. */
  #first: readonly T[] = [];
  #next = 0;
  #later: T[] = [];
  #onEmpty: (() => void)[] = [];

  /** @param act must not throw */
  constructor(pace: Pace, act: (item: T) => void) {
    this.#pace = pace;
    this.#act = act;
  }

  add(item: T): void {
    if (this.#waits) {
      this.#later.push(item);
      return;
    }
    if (!this.#slice) {
      this.#slice = new TimeSlice(this.#pace);
      this.#pace.soon(this.#nextTurn);
    }
    this.#act(item);
    if (this.#slice?.over()) this.#waits = true;
  }

  /** Processes all waiting items in this turn. */
  flush(): void {
    while (this.#step());
  }

  /** Resolves when no item waits. */
  empty(): Promise<void> {
    return this.#waits ? new Promise((resolve) => void this.#onEmpty.push(resolve)) : Promise.resolve();
  }

  /** Processes the oldest waiting item. @returns false if none waits */
  #step(): boolean {
    if (this.#next === this.#first.length) {
      // Two lists, so that no list of processed items grows while items keep arriving.
      this.#first = this.#later;
      this.#later = [];
      this.#next = 0;
    }
    const item = this.#first[this.#next];
    if (item === undefined) return false;
    this.#next += 1;
    this.#act(item);
    return true;
  }

  readonly #nextTurn = (): void => {
    const slice = new TimeSlice(this.#pace);
    while (this.#step()) if (slice.over()) return this.#pace.soon(this.#nextTurn);
    this.#slice = undefined;
    this.#waits = false;
    for (const resolve of this.#onEmpty.splice(0)) resolve();
  };
}

/** Formats milliseconds since 1970 as ISO 8601. */
export function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** A timer of the system. It is an instance of a class, because thousands may run, and an object with a closure takes 100 bytes more. */
class SystemTimer implements Timer {
  #timer: NodeJS.Timeout | undefined;

  constructor(callback: () => void, ms: number) {
    this.#timer = setTimeout(callback, ms);
    this.#timer.unref();
  }

  /** A holder of a stopped timer does not hold its callback. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => Math.floor(performance.timeOrigin + performance.now()),
  wall: () => Date.now(),
  after(ms, callback) {
    return new SystemTimer(callback, ms);
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
 * Milliseconds since 1970: from the wall clock at the call of this function, and monotonic from then on, so that
 * changes of the wall clock do not change durations while the process lives.
 */
export function steadyDate(clock: Clock): () => number {
  if (clock.dateIsSteady) return () => clock.date();
  const start = clock.date() - clock.now();
  return () => start + clock.now();
}

/** Runs `callback` once, after any number of milliseconds, including more than one timer can wait. */
export function afterAny(clock: Clock, ms: number, callback: () => void): Timer {
  if (ms <= LONGEST_TIMER_MS) return clock.after(Math.max(0, ms), callback);
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

/** Timers in the form that XState expects. */
export interface XStateTimers {
  setTimeout(callback: () => void, ms: number): Timer;
  clearTimeout(timer: Timer | undefined): void;
}

/** Adapts a clock to XState, for delays of any length in an author's statechart. */
export function timersOf(clock: Clock): XStateTimers {
  return {
    setTimeout: (callback, ms) => afterAny(clock, ms, callback),
    clearTimeout: (timer) => timer?.cancel(),
  };
}
