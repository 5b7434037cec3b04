/** Where a time is across the timeline: idle time is folded to a narrow stripe, however long it was. Pure sums on numbers. */

/** Idle for longer than this is folded, in milliseconds. */
export const FOLD_AFTER = 3_000;
/** How much of an idle time is left on each side of its fold. */
const REST = 300;
/** The width of a fold in pixels; less, where many must share the pane. */
const FOLD = 30;

export interface Scale {
  /** The stretches in which something happens, in milliseconds; a fold is between each two. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** The milliseconds of all stretches before each. */
  readonly before: readonly number[];
  /** The milliseconds of all stretches. */
  readonly total: number;
  /** Pixels for each millisecond. */
  readonly k: number;
  /** Pixels for each fold. */
  readonly fold: number;
  /** The pixel that is at the left edge. */
  readonly offset: number;
}

/** The stretches without folds' widths: found once for each change of the records. */
export type Stretches = Pick<Scale, 'starts' | 'ends' | 'before' | 'total'>;

/** Finds what is idle for long. @param moments ascending */
export function stretchesOf(moments: readonly number[], until: number): Stretches {
  const starts: number[] = [];
  const ends: number[] = [];
  const before: number[] = [];
  let total = 0;
  let start = moments[0] ?? until;
  let last = start;
  const close = (end: number): void => {
    starts.push(start);
    ends.push(end);
    before.push(total);
    total += end - start;
  };
  for (const at of moments) {
    if (at - last > FOLD_AFTER) {
      close(last + REST);
      start = at - REST;
    }
    last = at;
  }
  if (until - last > FOLD_AFTER) {
    close(last + REST);
    start = until - REST;
  }
  close(Math.max(until, last, start + 1));
  return { starts, ends, before, total };
}

/** Everything in the width. */
export function fitted(stretches: Stretches, width: number): Scale {
  const folds = stretches.starts.length - 1;
  const fold = Math.min(FOLD, (width * 0.5) / Math.max(1, folds));
  return { ...stretches, fold, k: Math.max(1, width - folds * fold) / Math.max(1, stretches.total), offset: 0 };
}

/** With other pixels for each millisecond, and the time `at` at the pixel `x`. Folds have their full width when there is room for them. */
export function zoomed(stretches: Stretches, k: number, at: number, x: number): Scale {
  const scale: Scale = { ...stretches, k, fold: FOLD, offset: 0 };
  return { ...scale, offset: xOf(scale, at) - x };
}

export function xOf(scale: Scale, at: number): number {
  const index = stretchAt(scale.starts, at);
  return xIn(scale, index, at);
}

/** The pixel of a time that is in a stretch of that number, or in the fold after it. */
export function xIn({ starts, ends, before, k, fold, offset }: Scale, index: number, at: number): number {
  const start = starts[index] ?? 0;
  const end = ends[index] ?? start;
  const left = (before[index] ?? 0) * k + index * fold - offset;
  if (at <= end) return left + Math.max(0, at - start) * k;
  const next = starts[index + 1];
  const right = left + (end - start) * k;
  return next === undefined ? right : right + (fold * (at - end)) / (next - end);
}

export function timeAt(scale: Scale, x: number): number {
  const { starts, ends, before, k, fold, offset } = scale;
  const wanted = x + offset;
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((before[middle] ?? 0) * k + middle * fold <= wanted) low = middle;
    else high = middle - 1;
  }
  const start = starts[low] ?? 0;
  const end = ends[low] ?? start;
  const inside = start + Math.max(0, wanted - (before[low] ?? 0) * k - low * fold) / k;
  if (inside <= end) return inside;
  const next = starts[low + 1];
  if (next === undefined) return end;
  const over = wanted - ((before[low] ?? 0) + end - start) * k - low * fold;
  return Math.min(next, end + ((next - end) * over) / fold);
}

/** The width of everything, in pixels. */
export function widthOf({ total, k, fold, starts }: Scale): number {
  return total * k + (starts.length - 1) * fold;
}

/** The number of the last that is not after a time; 0, where all are. @param times ascending */
export function stretchAt(times: readonly number[], at: number): number {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((times[middle] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The number of the first that is at or after a time; the length, where none is. @param items ascending by `at` */
export function firstFrom(items: readonly { readonly at: number }[], at: number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((items[middle]?.at ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A round number of milliseconds that is at least so many. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  for (const factor of [1, 2, 5]) if (power * factor >= least) return power * factor;
  return power * 10;
}

/** A length of time in a few characters. @param step lengths that are so many milliseconds apart are to look different */
export function lengthOf(ms: number, step = Number.POSITIVE_INFINITY): string {
  const [unit, name] =
    ms < 1_000 ? [1, 'ms'] : ms < 60_000 ? [1_000, 's'] : ms < 3_600_000 ? [60_000, 'min'] : [3_600_000, 'h'];
  const digits = Math.max(1, Math.ceil(-Math.log10(step / unit)));
  return `${Number((ms / unit).toFixed(digits))} ${name}`;
}
