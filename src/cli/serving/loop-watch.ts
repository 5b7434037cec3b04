/** Starts the event loop watchdog for the commands that serve, unless the server's options configure one. */
import { join, resolve } from 'node:path';
import { DEFAULT_LIMITS } from '../../core/kernel/limits.ts';
import type { RuntimeLog } from '../../core/kernel/operator-log.ts';
import type { ServerOptions } from '../../core/server/options.ts';
import type { Server } from '../../features/server/server.ts';
import type { SaveEffect } from '../../features/workers/blocked.ts';
import { poison } from '../../features/workers/poison-calls.ts';
import { ALOUD_MS, startWatchdog, type Watchdog, watchLoad } from '../../features/workers/watchdog.ts';
import { commandLog } from '../command-log.ts';
import { say } from '../usage.ts';

/** Loads the record of calls that have blocked the process. Call it before the server listens. @returns the file of the record; undefined without a directory */
export function loadBlockedCalls(directory: string | undefined): string | undefined {
  if (directory === undefined) return undefined;
  const file = join(resolve(directory), 'blocked');
  for (const problem of poison.load(file)) say(`troupe: ${problem}`);
  return file;
}

/** Milliseconds by which the watchdog of a called program is faster than the client, which would not know why nothing came. */
const EARLIER_MS = 1_000;

/** The events that end the process of a command while its event loop is blocked. */
export interface Endings {
  /** See {@link loadBlockedCalls}. */
  readonly record?: string | undefined;
  /** A supervisor restarts the process. Default: false. */
  readonly supervised?: boolean;
  /**
   * One client waits for answers: a signal ends the process after two seconds, not only when its requests have timed out.
   * Default: false.
   */
  readonly alone?: boolean;
  /** The only client is a command that started the process and waits for one call. Default: false. */
  readonly called?: boolean;
  /** The client is on stdin, and its end ends the process. Default: false. */
  readonly input?: boolean;
  /** The effect of a save of the blocking code. Default: none. */
  readonly onSave?: SaveEffect;
}

/** Watches the event loop while the command loads a program. Call it before the first code of the program runs. */
export function watchLoading({ input, onSave }: Endings): void {
  // Nothing is served yet, and no request waits.
  watchLoad({ log: logOf(undefined), releaseMs: ALOUD_MS, inputMs: input ? 0 : undefined, onSave });
}

/**
 * Watches the event loop of a server that listens now. The watchdog ends a supervised process that is blocked for longer than
 * its requests may take: by then, the blocking call has timed out. It only reports an unsupervised process.
 */
export function watchLoop({ options }: Server, endings: Endings): Watchdog | undefined {
  const { record, supervised = false, called = false, alone = called, input = false, onSave } = endings;
  // The author has configured the watchdog, or disabled it.
  if (options.watchdog !== undefined) return undefined;
  const { graceMs = DEFAULT_LIMITS.graceMs } = options.limits ?? {};
  const longestMs = hardLimit(options);
  return startWatchdog({
    ...(supervised ? { hardMs: longestMs, record } : { releaseMs: alone ? ALOUD_MS : longestMs }),
    ...(called && longestMs !== undefined && { hardMs: Math.max(longestMs - EARLIER_MS, ALOUD_MS) }),
    // A command that has its answer, or was interrupted, waits for nothing more.
    inputMs: input ? (called ? 0 : graceMs) : undefined,
    onSave,
    log: logOf(options.log),
  });
}

function logOf(log: RuntimeLog | undefined): RuntimeLog {
  return log ?? commandLog() ?? ((level, message) => say(`troupe ${level}: ${message}`));
}

/** Time limit in milliseconds for a blocked supervised process, after which its watchdog ends it; undefined for no limit. */
export function hardLimit({ watchdog, limits }: ServerOptions): number | undefined {
  if (watchdog === undefined) return limits?.timeoutMs ?? DEFAULT_LIMITS.timeoutMs;
  return typeof watchdog === 'boolean' ? undefined : watchdog.hardMs;
}
