/** The signals that ask a process to stop: the first requests it, the second enforces it. */
import { constants } from 'node:os';

/** The signals that ask a process to stop. */
export const STOP = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

export type StopSignal = (typeof STOP)[number];

/**
 * Calls `onFirst` for the first SIGTERM, SIGINT or SIGHUP. A second one, of any of the three, exits at once with 128
 * plus its number.
 *
 * @param signals the ones to watch, if not all three
 * @returns a function that stops listening and restores the usual effect of the signals
 */
export function watchSignals(onFirst: (signal: StopSignal) => void, signals: readonly StopSignal[] = STOP): () => void {
  let asked = false;
  const hear = (signal: StopSignal): void => {
    if (asked) process.exit(128 + constants.signals[signal]);
    asked = true;
    onFirst(signal);
  };
  for (const signal of signals) process.on(signal, hear);
  return () => {
    for (const signal of signals) process.off(signal, hear);
  };
}
