/** The option `watchdog` of a server, and its checks. */
import { LONGEST_TIMER_MS } from './clock.ts';
import { describe, isObject } from './protocol/json.ts';

/** When a blocked loop is seen, and what becomes of its process. Milliseconds. */
export interface WatchdogLimits {
  /** A loop that is blocked for so long is logged, with what runs and where. Default 200. */
  readonly softMs?: number;
  /** The process is ended (SIGKILL, exit status 137): somebody must start it again. Default: never. */
  readonly hardMs?: number;
}

/** The option `watchdog`, where it is no mere yes or no. */
export interface WatchdogOption extends WatchdogLimits {
  /** A file in which what blocked the process is kept, so that a call which did so twice is refused when it is started again. */
  readonly record?: string | undefined;
}

/** @throws {TypeError | RangeError} for what is no such option */
export function checkWatchdog(option: unknown): void {
  if (option === undefined || typeof option === 'boolean') return;
  if (!isObject(option))
    throw new TypeError(
      `createServer: watchdog: expected true, false or { softMs, hardMs, record }, got ${describe(option)}`,
    );
  for (const [name, value] of Object.entries(option)) {
    if (value === undefined) continue;
    if (name === 'record') {
      if (typeof value !== 'string')
        throw new TypeError(`createServer: watchdog.record: expected the path of a file, got ${describe(value)}`);
    } else if (name !== 'softMs' && name !== 'hardMs')
      throw new TypeError(`createServer: watchdog.${name}: no such option; there are softMs, hardMs, record`);
    else if (!Number.isSafeInteger(value) || Number(value) < LEAST_MS || Number(value) > LONGEST_TIMER_MS)
      throw new RangeError(
        `createServer: watchdog.${name}: expected whole milliseconds from ${LEAST_MS} on (the loop is looked at every 50), got ${describe(value)}`,
      );
  }
}

/** Two looks: a shorter block cannot be told from none. */
const LEAST_MS = 100;
