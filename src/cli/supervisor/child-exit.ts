/** The end of a child process, and the signals of the process that supervises it. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The process failed to start. */
  readonly error: Error | undefined;
}

/** Settles when a child process has ended, or has failed to start. */
export function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, signal: null, error }));
    child.once('exit', (code, signal) => resolve({ code, signal, error: undefined }));
  });
}

/** @param failure the reason for which it was killed @example describeExit(await exitOf(child)) // 'was killed by SIGKILL' */
export function describeExit({ code, signal, error }: Exit, failure?: string): string {
  if (error) return `failed to start (${error.message})`;
  return failure ?? (signal === null ? `ended with code ${code}` : `was killed by ${signal}`);
}

/** The signals that end a process that supervises others. */
type EndSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/**
 * Handles the signals of a process that supervises others.
 *
 * @param stop lets the children finish, at the first signal
 * @param kill kills the children at the second signal. This process then exits
 * @param replace replaces the children, at SIGHUP
 */
export function onSignals(
  stop: (signal: EndSignal) => void,
  kill: (signal: EndSignal) => void,
  replace: (signal: EndSignal) => void,
): void {
  let stopping = false;
  const end = (signal: EndSignal): void => {
    if (stopping) {
      kill(signal);
      process.exit(128 + constants.signals[signal]);
    }
    stopping = true;
    stop(signal);
  };
  process.on('SIGTERM', end).on('SIGINT', end);
  // On a terminal, SIGHUP means that the terminal was closed.
  process.on('SIGHUP', () => (process.stdin.isTTY ? end('SIGHUP') : replace('SIGHUP')));
}
