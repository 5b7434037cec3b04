/** The waits of tests: for a cause, or through a time in which something must not happen. */

/** What ends a wait that is in vain, in milliseconds. No test is green or red by it: a busy machine takes seconds. */
export const HANG_MS = 60_000;
/** Least time between two looks, in milliseconds. */
const LOOK_MS = 5;
/** Most time between two looks, in milliseconds. */
const LATE_LOOK_MS = 100;
/** A look may be a request, which takes the time of what is waited for: the longer the wait, the rarer the looks. */
const LOOKS_OF_WAIT = 0.05;

/**
 * Resolves when a condition holds.
 *
 * @param what what is waited for, and what is there instead. Default: the condition
 * @param hangMs only for a test of a wait that is in vain
 * @throws Error if it does not hold after a minute
 * @example await until(() => lines.includes('ready'), 'the server to be ready');
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what: string | (() => string) = String(holds),
  hangMs = HANG_MS,
): Promise<void> {
  const began = performance.now();
  while (!(await holds())) {
    const waited = performance.now() - began;
    if (waited > hangMs) throw inVain(what, hangMs);
    const pause = Math.min(LOOK_MS + waited * LOOKS_OF_WAIT, LATE_LOOK_MS);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

function inVain(what: string | (() => string), ms = HANG_MS): Error {
  return new Error(`waited ${ms / 1_000} s for ${typeof what === 'string' ? what : what()}`);
}

/**
 * Resolves as a promise does.
 *
 * @throws Error if it does not settle within a minute
 */
export async function inTime<T>(promise: Promise<T>, what: string | (() => string)): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(inVain(what)), HANG_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Lets time pass: for something that must not happen in it, or as part of what is tested, such as the length of an outage. A busy
 * machine makes such a test weaker, and never red.
 *
 * @param _why what must not happen, or what takes this time
 */
export function elapse(ms: number, _why: string): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A clock of a test, which passes when the test says so. */
interface Passing {
  advance(ms: number): Promise<void>;
}

/** Looks without a pause: what waits for no real input happens meanwhile. */
const QUICK_LOOKS = 20;
/** Looks for which the pause grows by a millisecond. A thousand looks take a minute. */
const LOOKS_PER_MS = 8;

/**
 * Lets the time of a test pass until a condition holds. Real time passes, too: without it, minutes of that clock would pass while a
 * socket, a disk or a process needs a millisecond, and end what waits for it.
 *
 * @param stepMs the time between two looks, in milliseconds of that clock
 * @throws Error if it does not hold after a thousand looks
 */
export async function untilPassed(
  clock: Passing,
  holds: () => boolean | Promise<boolean>,
  stepMs: number,
): Promise<void> {
  for (let look = 0; !(await holds()); look += 1) {
    if (look === 1_000) throw new Error(`waited ${1_000 * stepMs} ms of the clock for ${String(holds)}`);
    await clock.advance(stepMs);
    if (look >= QUICK_LOOKS) await elapse(LOOK_MS + look / LOOKS_PER_MS, 'what comes from outside');
  }
}

/** Lets the time of a test pass until a promise settles, and resolves or rejects as it does. See {@link untilPassed}. */
export async function whilePassing<T>(clock: Passing, work: Promise<T>, stepMs: number): Promise<T> {
  let settled = false;
  const end = (): void => {
    settled = true;
  };
  work.then(end, end);
  await untilPassed(clock, () => settled, stepMs);
  return work;
}
