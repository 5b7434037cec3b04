/** Decides about files that failed and then passed alone: whether the run is green, from this run and the runs before it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Runs that are remembered. */
const REMEMBERED = 5;
/** Runs of the remembered ones in which one file may be flaky. */
const TOLERATED = 1;

/** The flaky files of each of the last runs, the latest run last. */
export type History = readonly (readonly string[])[];

/**
 * The reasons for which flaky files make a run red: two files in one run, or one file in two of the last five.
 *
 * @param flaky the files that failed and then passed alone, in this run
 * @param history the runs before it
 */
export function objections(flaky: readonly string[], history: History): string[] {
  const reasons: string[] = [];
  if (flaky.length > 1) reasons.push(`${flaky.length} flaky files in one run (at most one is tolerated)`);
  for (const file of flaky) {
    const times = 1 + history.slice(1 - REMEMBERED).filter((run) => run.includes(file)).length;
    if (times > TOLERATED)
      reasons.push(`${file} was flaky in ${times} of the last ${REMEMBERED} runs: mend the product or the test`);
  }
  return reasons;
}

/** Reads the history of a checkout. A file that is not a history counts as none. */
export function readHistory(path: string): History {
  if (!existsSync(path)) return [];
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Array.isArray(read) ? read.filter(isRun) : [];
  } catch {
    return [];
  }
}

function isRun(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((file) => typeof file === 'string');
}

/** Adds a run to the history of a checkout. */
export function remember(path: string, flaky: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify([...readHistory(path), flaky].slice(-REMEMBERED))}\n`);
}
