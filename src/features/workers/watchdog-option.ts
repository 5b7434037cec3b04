/** The option `watchdog` of a server, and its checks. */
import { LONGEST_TIMER_MS } from '../../core/kernel/clock.ts';
import { describe, isObject } from '../../core/protocol/json.ts';

/** The thresholds of the watchdog, in milliseconds. */
export interface WatchdogLimits {
  /** Milliseconds after which a blocked event loop is logged, with the running element and its stack. Default 200. */
  readonly softMs?: number | undefined;
  /**
   * Milliseconds after which the process is killed (SIGKILL, exit status 137). A supervisor must restart it. Default:
   * never.
   */
  readonly hardMs?: number | undefined;
}

/** The option `watchdog` as an object. */
export interface WatchdogOption extends WatchdogLimits {
  /**
   * Path of a file that records what blocked the process, so that the restarted process rejects a call that did so
   * twice.
   */
  readonly record?: string | undefined;
}

/** @throws {TypeError | RangeError} if the option is invalid */
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
        `createServer: watchdog.${name}: expected whole milliseconds of at least ${LEAST_MS} (the loop is checked every 50), got ${describe(value)}`,
      );
  }
}

/** Two checks: a shorter stall cannot be detected. */
const LEAST_MS = 100;
