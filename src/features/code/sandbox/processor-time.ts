/** The processor time of the running thread, as exactly as the system tells it. */
import { readFileSync } from 'node:fs';
import { systemClock } from '../../../core/kernel/clock.ts';

/** Has the time of the thread on a processor, in nanoseconds, as its first number. Linux only. */
const SCHEDULED = '/proc/thread-self/schedstat';

/** Node 23.9 and later. */
const usage: unknown = Reflect.get(process, 'threadCpuUsage');

/** Milliseconds of this thread on a processor; undefined if the system tells only those of the process. */
function exactMs(): number | undefined {
  if (typeof usage === 'function') {
    const { user, system }: NodeJS.CpuUsage = usage.call(process);
    return (user + system) / 1_000;
  }
  try {
    return Number(readFileSync(SCHEDULED, 'utf8').split(' ', 1)[0]) / 1_000_000;
  } catch {
    return undefined;
  }
}

/**
 * Measures one slice. A thread that waits for a processor makes no progress, and another load must not end its script: elapsed time
 * counts only where the system does not tell the time of a thread.
 */
export class ProcessorTime {
  readonly #since = systemClock.now();
  readonly #exactSince = exactMs();
  /** The elapsed time at which the exact time is read again: reading it costs as much as a thousand steps of a script. */
  #readAt = 0;

  /** Milliseconds since this object was made. */
  ms(): number {
    const elapsed = systemClock.now() - this.#since;
    const exact = this.#exactSince === undefined ? undefined : exactMs();
    return exact === undefined || this.#exactSince === undefined
      ? elapsed
      : Math.min(elapsed, exact - this.#exactSince);
  }

  /** True if the thread has used more than this. Cheap, so that it can be asked often. */
  exceeds(limitMs: number): boolean {
    const elapsed = systemClock.now() - this.#since;
    if (elapsed <= limitMs || elapsed < this.#readAt) return false;
    const used = this.ms();
    this.#readAt = elapsed + (limitMs - used) / 2;
    return used > limitMs;
  }
}
