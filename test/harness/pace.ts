/** Measured durations: they are printed, and decide a test only where the machine does nothing else. */
import * as assert from 'uvu/assert';

/** Whether the machine does nothing else during this run, as its caller says: only then do figures decide a test. */
const QUIET = process.env.TROUPE_QUIET === '1';

/** Processor time of this process so far, in milliseconds: what computing takes, whatever else the machine does. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/**
 * Prints a measured duration. Fails where it is too long, if `TROUPE_QUIET=1` says that the machine does nothing else: on a
 * busy one a duration says nothing.
 *
 * @param ms the duration, in milliseconds
 * @param limitMs the limit on an idle machine
 */
export function assertFigure(ms: number, limitMs: number, what: string): void {
  const text = `${what}: ${ms.toFixed(0)} ms (goal: at most ${limitMs} ms)`;
  process.stdout.write(`${text}\n`);
  assert.ok(!QUIET || ms <= limitMs, text);
}
