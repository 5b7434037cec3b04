/** Judges durations on a machine that may be busy: a limit grows with the time that other processes take from this one. */
import * as assert from 'uvu/assert';

/** Processor time of one measurement, in microseconds. */
const SPIN_US = 15_000;
/** Load comes and goes between two measurements. */
const MARGIN = 3;
/** Whether the machine does nothing else during this run, as its caller says: only then do figures decide a test. */
const QUIET = process.env.TROUPE_QUIET === '1';

/** Processor time of this process so far, in milliseconds: what computing takes, whatever else the machine does. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** How many times longer than its processor time this process takes now: 1 on an idle machine. */
export function slowness(): number {
  const before = process.cpuUsage();
  const began = performance.now();
  let used = 0;
  while (used < SPIN_US) {
    const { user, system } = process.cpuUsage(before);
    used = user + system;
  }
  return Math.max(1, ((performance.now() - began) * 1_000) / used);
}

/**
 * Asserts that a duration is within its limit. On an idle machine the limit holds as it is; on a busy one it is extended.
 *
 * @param ms the duration, in milliseconds
 * @param limitMs the limit on an idle machine
 * @param before the slowness when the measured work began
 */
export function assertWithin(ms: number, limitMs: number, what: string, before = 1): void {
  const busy = Math.max(before, slowness());
  // An idle machine is measured at 1.0 to 1.2.
  const limit = busy < 1.3 ? limitMs : limitMs * busy * MARGIN;
  assert.ok(
    ms <= limit,
    `${what}: ${ms.toFixed(1)} ms, expected at most ${limit.toFixed(0)} ms (slowness ${busy.toFixed(1)})`,
  );
}

/**
 * Prints a measured duration. Fails where it is too long, if `TROUPE_QUIET=1` says that the machine does nothing else: a
 * duration that several processes take together says nothing on a busy one.
 *
 * @param ms the duration, in milliseconds
 * @param limitMs the limit on an idle machine
 */
export function assertFigure(ms: number, limitMs: number, what: string): void {
  const text = `${what}: ${ms.toFixed(0)} ms (goal: at most ${limitMs} ms)`;
  process.stdout.write(`${text}\n`);
  assert.ok(!QUIET || ms <= limitMs, text);
}
