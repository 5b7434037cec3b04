/** Processor time that the host of a virtual machine keeps from it: what is measured meanwhile says nothing of who is measured. */
import { readFileSync } from 'node:fs';

/** What the kernel counts in: hundredths of a second on every Linux that Node runs on. */
const TICK_MS = 10;
/** The share of a turn from which its figures are not taken: a stall of a tenth of a second is a whole p99. */
const MOST = 0.02;
/** How often a turn is made again. */
const TIMES = 3;

let again = 0;

/** How many turns were made again. */
export function repeated(): number {
  return again;
}

/**
 * Runs it, and runs it again, three times at most, for as long as more than a fiftieth of its time was stolen.
 * A measurement whose every run is disturbed is the one that was disturbed least.
 */
export async function undisturbed<T>(run: () => Promise<T>): Promise<T> {
  let best: { readonly value: T; readonly share: number } | undefined;
  for (let time = 0; time <= TIMES; time += 1) {
    const [stolen, began] = [stolenMs(), performance.now()];
    const value = await run();
    const lost = stolenMs() - stolen;
    const share = lost / (performance.now() - began);
    if (!best || share < best.share) best = { value, share };
    // A single tick may be from before.
    if (share <= MOST || lost <= TICK_MS) break;
    if (time < TIMES) again += 1;
  }
  if (!best) throw new Error('expected at least one run');
  return best.value;
}

/** Milliseconds since the machine has started, of all its processors together; 0 where the system does not tell. */
function stolenMs(): number {
  try {
    // The eighth figure of the line that begins with "cpu" (proc(5)).
    return Number(readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]?.split(/\s+/)[8] ?? 0) * TICK_MS;
  } catch {
    return 0;
  }
}
