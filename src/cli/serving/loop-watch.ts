/** Lets `troupe run` and `troupe serve` watch the event loop of the server that they serve, unless its author says otherwise. */
import { join, resolve } from 'node:path';
import { DEFAULT_LIMITS } from '../../limits.ts';
import type { ServerOptions } from '../../options.ts';
import type { Server } from '../../server.ts';
import { poison } from '../../workers/poison-calls.ts';
import { startWatchdog } from '../../workers/watchdog.ts';
import { say } from '../usage.ts';

/** The file in which what blocked the process is kept; undefined without a directory. Before anything is served. */
export function blockedIn(directory: string | undefined): string | undefined {
  if (directory === undefined) return undefined;
  const file = join(resolve(directory), 'blocked');
  for (const problem of poison.load(file)) say(`troupe: ${problem}`);
  return file;
}

/**
 * Watches the loop of a server that listens now. A supervised process is ended once it has been blocked for longer than its
 * requests may take: nobody waits for what blocks it any more. Before that, its one client may well want what takes so long.
 *
 * @param record see {@link blockedIn}
 * @param supervised whether somebody starts it again
 */
export function watchLoop({ options }: Server, record: string | undefined, supervised: boolean): void {
  // Its author has said what is to be watched, or that nothing is.
  if (options.watchdog !== undefined) return;
  const hardMs = hardLimit(options);
  startWatchdog({
    ...(supervised ? { ...(hardMs === undefined ? {} : { hardMs }), record } : {}),
    log: options.log ?? ((level, message) => say(`troupe ${level}: ${message}`)),
  });
}

/** How long a supervised process may be blocked before its watchdog ends it, in milliseconds; undefined for as long as it likes. */
export function hardLimit({ watchdog, limits }: ServerOptions): number | undefined {
  if (watchdog === undefined) return limits?.timeoutMs ?? DEFAULT_LIMITS.timeoutMs;
  return typeof watchdog === 'boolean' ? undefined : watchdog.hardMs;
}
