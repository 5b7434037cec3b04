/** Calculates how many actors may be active in the memory of this process. */
import { getHeapStatistics } from 'node:v8';

/** Bytes that XState uses for one active actor (docs/adr/0009). */
const AWAKE_BYTES = 6_000;
/** Their share of the heap. */
const SHARE = 1 / 8;
const LEAST = 300;

/**
 * The most active actors. Above it, those that were idle longest are passivated early: a burst of clients must not end
 * the process.
 */
export function maxActiveActors(): number {
  return Math.max(LEAST, Math.floor((getHeapStatistics().heap_size_limit * SHARE) / AWAKE_BYTES));
}
