/** The processor time of a thread, as exactly as the system tells it. */
import { readFileSync, readlinkSync } from 'node:fs';
import { systemClock } from '../../../core/kernel/clock.ts';

/** Linux: leads to the folder of the running thread. */
const THREAD = '/proc/thread-self';

/** The file in which the system counts the time of the running thread, for {@link timeIn}; undefined if there is none. */
export function timeFile(): string | undefined {
  try {
    const path = `/proc/${readlinkSync(THREAD)}/schedstat`;
    return timeIn(path) === undefined ? undefined : path;
  } catch {
    return undefined;
  }
}

/** Milliseconds that a thread has been on a processor; undefined if it has ended, or the file is none of {@link timeFile}. */
export function timeIn(path: string): number | undefined {
  try {
    // Nanoseconds on a processor, nanoseconds of waiting for one, and the number of turns.
    const [nanoseconds = ''] = readFileSync(path, 'utf8').split(' ', 1);
    return /^\d+$/.test(nanoseconds) ? Number(nanoseconds) / 1_000_000 : undefined;
  } catch {
    return undefined;
  }
}

/** Node 23.9 and later. */
const usage: unknown = Reflect.get(process, 'threadCpuUsage');

/** Milliseconds of this thread on a processor; undefined if the system tells only those of the process. */
function exactMs(): number | undefined {
  if (typeof usage !== 'function') return timeIn(`${THREAD}/schedstat`);
  const { user, system }: NodeJS.CpuUsage = usage.call(process);
  return (user + system) / 1_000;
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
