/** The mark of a run that ends itself in time: the watchdog does not interrupt it. */
import { processWide } from './global-registry.ts';

/** The words that the watchdog's thread shares with this one, and the place of the mark among them. */
const shared = processWide<{ words: Int32Array | undefined }>('troupe.timed-run', () => ({ words: undefined }));
export const TIMED_RUN = 2;

/** Lets a watchdog see the marks from now on. */
export function showTimedRuns(words: Int32Array | undefined): void {
  shared.words = words;
}

/**
 * Begins or ends a run with a time limit of `node:vm`: the mark is odd in between. A question of the watchdog runs on top of the
 * running code. If the limit is reached meanwhile, V8 ends the question, and the run continues without a limit.
 */
export function markTimedRun(): void {
  if (shared.words) Atomics.add(shared.words, TIMED_RUN, 1);
}
