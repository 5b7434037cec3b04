/** Ends a command with the shell in which npm has started it: npm passes signals on to its shell, which dies without its command. */
import { systemClock } from '../core/kernel/clock.ts';
import { watchParent } from '../core/transports/parent-watch.ts';

/** Interval of the checks, in milliseconds. */
const CHECK_MS = 1_000;

/** Sends SIGTERM to this process when the shell of `npx` or `npm run` has ended. @param env that of this process */
export function endWithNpm(env: NodeJS.ProcessEnv): void {
  // Windows has no signals, and ends the processes of a terminal together.
  if (env.npm_command === undefined || process.platform === 'win32') return;
  watchParent({
    clock: systemClock,
    everyMs: CHECK_MS,
    onGone: () => process.kill(process.pid, 'SIGTERM'),
    onUnable() {},
  });
}
