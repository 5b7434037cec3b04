/**
 * Waits for an arrival: resolved by the arrival, never by a sleep, or rejected at a deadline with an error that names
 * what is missing.
 */
import { processWide } from '../core/kernel/global-registry.ts';

/**
 * The deadline of the waits of a test that names none, in milliseconds, and the timers of all waits. A test runner may set the one for
 * its process, and let the others keep it alive no longer.
 */
export const waits = processWide('troupe.testing.waits', () => ({
  deadlineMs: 5_000,
  timers: new Set<NodeJS.Timeout>(),
}));

/** The parameters of a wait. */
interface Deadline {
  /** The expected arrival, which ends the sentence "waited 5000 ms for …". */
  readonly what: string;
  /** Milliseconds of real time, whatever the server's clock is, because this limits the test itself. */
  readonly ms: number;
  /** Describes what has arrived, for the error at the deadline. */
  arrived(): string;
}

export interface PendingArrival<T> {
  readonly promise: Promise<T>;
  settle(value: T): void;
  /** The error gets the stack of the waiting code; its own would be that of a timer or of the server. */
  fail(error: Error): void;
}

/** Begins to wait. @param ended is called when the wait is over in any way */
export function wait<T>({ what, ms, arrived }: Deadline, ended: () => void = () => {}): PendingArrival<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // Its stack is formatted only for a failure: most waits end with their arrival.
  const waiter = new Error();
  // The caller may await the promise later; a failure before that is not an unhandled rejection.
  promise.catch(() => {});
  const finish = (): void => {
    clearTimeout(timer);
    waits.timers.delete(timer);
    ended();
  };
  const fail = (error: Error): void => {
    finish();
    const [, ...waiters] = waiter.stack?.split('\n') ?? [];
    error.stack = [`${error.name}: ${error.message}`, ...waiters].join('\n');
    reject(error);
  };
  // This timer keeps the process alive: a test that waits in vain must end with this error, not silently.
  const timer = setTimeout(() => fail(new Error(`waited ${ms} ms for ${what}; ${arrived()}`)), ms);
  waits.timers.add(timer);
  return {
    promise,
    fail,
    settle(value) {
      finish();
      resolve(value);
    },
  };
}

/** Lists texts for an error: the last ten, each cut to a readable length. */
export function listArrivals(texts: readonly string[]): string {
  const shown = texts.slice(-10).map((text) => `\n  ${text.length > 400 ? `${text.slice(0, 400)}…` : text}`);
  const hidden = texts.length - shown.length;
  return `${hidden > 0 ? `\n  (${hidden} before these)` : ''}${shown.join('')}`;
}
