/** The signals that ask a process to stop: the first is a request, the second an order. */
import { constants } from 'node:os';

const STOP = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

export type StopSignal = (typeof STOP)[number];

/**
 * Calls `onFirst` for the first SIGTERM, SIGINT or SIGHUP; a second one, of any of the three, exits at once with 128 plus its number.
 *
 * @returns a function that stops listening, which gives the signals their usual effect again.
 */
export function watchSignals(onFirst: (signal: StopSignal) => void): () => void {
  let asked = false;
  const hear = (signal: StopSignal): void => {
    if (asked) process.exit(128 + constants.signals[signal]);
    asked = true;
    onFirst(signal);
  };
  for (const signal of STOP) process.on(signal, hear);
  return () => {
    for (const signal of STOP) process.off(signal, hear);
  };
}
