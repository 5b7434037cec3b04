/** A text for the number of missing records. It claims no more than is known. */
import type { GapFrame } from '../frames.ts';

/** The text for all gaps, such as `1,204 exchanges`, or `at least 12 records` during a flood. */
export function missing(gaps: readonly GapFrame[]): string {
  const sum = (count: (gap: GapFrame) => number): number => gaps.reduce((all, gap) => all + count(gap), 0);
  const records = counted(
    sum((gap) => gap.records),
    'record',
  );
  const exchanges = sum((gap) => gap.exchanges);
  const flood = gaps.some(({ why }) => why === 'flood');
  // An omitted exchange in a flood has hardly more records than its request: their number is unknown.
  if (exchanges === 0) return flood ? `at least ${records}` : records;
  return flood ? counted(exchanges, 'exchange') : `${records} of ${counted(exchanges, 'exchange')}`;
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}
