/** The horizontal scale of the timeline: idle time is folded to a narrow stripe. Pure functions on numbers. */

/** Minimum idle time that is folded, in milliseconds. */
export const FOLD_AFTER = 3_000;
/** Idle milliseconds that remain on each side of a fold. */
const REST = 300;
/** The width of a fold in pixels; less if many share the pane. */
const FOLD = 30;

export interface Scale {
  /** The stretches of activity, in milliseconds, with a fold between each two. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** The total milliseconds of the stretches before each one. */
  readonly before: readonly number[];
  /** The total milliseconds of all stretches. */
  readonly total: number;
  /** Pixels per millisecond. */
  readonly k: number;
  /** Pixels per fold. */
  readonly fold: number;
  /** The pixel at the left edge. */
  readonly offset: number;
}

/** The stretches without the widths of folds: computed once for each change of the records. */
export type Stretches = Pick<Scale, 'starts' | 'ends' | 'before' | 'total'>;

/** Finds long idle times. @param moments ascending */
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

/** Scales everything to the width. */
export function fitted(stretches: Stretches, width: number): Scale {
  const folds = stretches.starts.length - 1;
  const fold = Math.min(FOLD, (width * 0.5) / Math.max(1, folds));
  return { ...stretches, fold, k: Math.max(1, width - folds * fold) / Math.max(1, stretches.total), offset: 0 };
}

/**
 * Scales to that many pixels per millisecond, with the time `at` at the pixel `x`. Folds have their full width if there
 * is space.
 */
export function zoomed(stretches: Stretches, k: number, at: number, x: number): Scale {
  const scale: Scale = { ...stretches, k, fold: FOLD, offset: 0 };
  return { ...scale, offset: xOf(scale, at) - x };
}

export function xOf(scale: Scale, at: number): number {
  const index = stretchAt(scale.starts, at);
  return xIn(scale, index, at);
}

/** The pixel of a time in the stretch with that index, or in the fold after it. */
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

/** The total width in pixels. */
export function widthOf({ total, k, fold, starts }: Scale): number {
  return total * k + (starts.length - 1) * fold;
}

/** The index of the last item that is not after a time; 0 if all are. @param times ascending */
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

/** The index of the first item at or after a time; the length if there is none. @param items ascending by `at` */
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

/** The smallest round number of milliseconds that is not less. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  for (const factor of [1, 2, 5]) if (power * factor >= least) return power * factor;
  return power * 10;
}

/** Formats a duration in a few characters. @param step durations with this difference get different texts */
export function lengthOf(ms: number, step = Number.POSITIVE_INFINITY): string {
  const [unit, name] =
    ms < 1_000 ? [1, 'ms'] : ms < 60_000 ? [1_000, 's'] : ms < 3_600_000 ? [60_000, 'min'] : [3_600_000, 'h'];
  const digits = Math.max(1, Math.ceil(-Math.log10(step / unit)));
  return `${Number((ms / unit).toFixed(digits))} ${name}`;
}
