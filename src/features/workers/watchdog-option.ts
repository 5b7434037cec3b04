/** The option `watchdog` of a server, and its checks. */
import { LONGEST_TIMER_MS } from '../../core/kernel/clock.ts';
import * as option from '../../core/protocol/option-rows.ts';

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /**
     * Watches the event loop from a thread. If the loop is blocked for `softMs` milliseconds (200), the blocking tool and
     * its stack are logged. If it is blocked for `hardMs` milliseconds, the process is killed (SIGKILL): set `hardMs`
     * only if a supervisor restarts the process. If `record` names a file, a call that killed the process twice is
     * rejected. Default false; `troupe run` and `troupe serve` turn it on.
     */
    readonly watchdog?: boolean | WatchdogOption | undefined;
  }
}

/** The thresholds of the watchdog, in milliseconds. */
interface WatchdogLimits {
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

/** Two checks: a shorter stall cannot be detected. */
const LEAST_MS = 100;
const stall = option.expected(`whole milliseconds of at least ${LEAST_MS} (the loop is checked every 50)`, (value) =>
  option.isWhole(value, LEAST_MS, LONGEST_TIMER_MS),
);
const ROWS: option.Rows<WatchdogOption> = {
  softMs: stall,
  hardMs: stall,
  record: option.expected('the path of a file', (value) => typeof value === 'string'),
};
const among = option.group('true, false or { softMs, hardMs, record }', ROWS, '.');

/** Finds what is wrong with the option `watchdog`. */
export function problemOfWatchdog(option: unknown): string | undefined {
  return typeof option === 'boolean' ? undefined : among(option);
}
