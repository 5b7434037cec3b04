/** Starts the event loop watchdog for the commands that serve, unless the server's options configure one. */
import { join, resolve } from 'node:path';
import { DEFAULT_LIMITS } from '../../core/kernel/limits.ts';
import type { ServerOptions } from '../../core/server/options.ts';
import type { Server } from '../../features/server/server.ts';
import { poison } from '../../features/workers/poison-calls.ts';
import { startWatchdog, type Watchdog } from '../../features/workers/watchdog.ts';
import { commandLog } from '../command-log.ts';
import { say } from '../usage.ts';

/** Loads the record of calls that have blocked the process. Call it before the server listens. @returns the file of the record; undefined without a directory */
export function loadBlockedCalls(directory: string | undefined): string | undefined {
  if (directory === undefined) return undefined;
  const file = join(resolve(directory), 'blocked');
  for (const problem of poison.load(file)) say(`troupe: ${problem}`);
  return file;
}

/**
 * Watches the event loop of a server that listens now. The watchdog ends a supervised process that is blocked for longer than
 * its requests may take: by then, the blocking call has timed out. It only reports an unsupervised process.
 *
 * @param record see {@link loadBlockedCalls}
 * @param supervised whether a supervisor restarts the process
 * @param releaseMs milliseconds after which a signal ends a blocked process that has no supervisor; default: when its
 *   requests have timed out, because until then it may still answer them
 */
export function watchLoop(
  { options }: Server,
  record: string | undefined,
  supervised: boolean,
  releaseMs = hardLimit(options),
): Watchdog | undefined {
  // The author has configured the watchdog, or disabled it.
  if (options.watchdog !== undefined) return undefined;
  return startWatchdog({
    ...(supervised ? { hardMs: hardLimit(options), record } : { releaseMs }),
    log: options.log ?? commandLog() ?? ((level, message) => say(`troupe ${level}: ${message}`)),
  });
}

/** Time limit in milliseconds for a blocked supervised process, after which its watchdog ends it; undefined for no limit. */
export function hardLimit({ watchdog, limits }: ServerOptions): number | undefined {
  if (watchdog === undefined) return limits?.timeoutMs ?? DEFAULT_LIMITS.timeoutMs;
  return typeof watchdog === 'boolean' ? undefined : watchdog.hardMs;
}
