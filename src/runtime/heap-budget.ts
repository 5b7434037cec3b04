/** How many actors may be awake at once in the memory that this process was given. */
import { getHeapStatistics } from 'node:v8';

/** What XState keeps for one that is awake, in bytes (docs/adr/0009). */
const AWAKE_BYTES = 6_000;
/** The share of the heap that they may have. */
const SHARE = 1 / 8;
const LEAST = 300;

/** Beyond it, those that had no mail for longest rest before their time: a burst of clients must not end the process. */
export function maxActiveActors(): number {
  return Math.max(LEAST, Math.floor((getHeapStatistics().heap_size_limit * SHARE) / AWAKE_BYTES));
}
