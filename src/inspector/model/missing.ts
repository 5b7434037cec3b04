/** What is not shown, in words: no more is said than is known. */
import type { GapFrame } from '../frames.ts';

/** Such as `1,204 exchanges`, or `at least 12 records` of exchanges that are left out; of what is missing for all the gaps. */
export function missing(gaps: readonly GapFrame[]): string {
  const sum = (count: (gap: GapFrame) => number): number => gaps.reduce((all, gap) => all + count(gap), 0);
  const records = counted(
    sum((gap) => gap.records),
    'record',
  );
  const exchanges = sum((gap) => gap.exchanges);
  const flood = gaps.some(({ why }) => why === 'flood');
  // Of an exchange that is left out in a flood, hardly more than its request is recorded: its records are not known.
  if (exchanges === 0) return flood ? `at least ${records}` : records;
  return flood ? counted(exchanges, 'exchange') : `${records} of ${counted(exchanges, 'exchange')}`;
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}
