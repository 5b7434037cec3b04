/** The height of each row of the timeline, and the lane of each exchange in it. */
import type { TimelineRow, WireSpan } from './props.ts';

export const AXIS = 22;
/** The widths of the column of names. */
export const GUTTER = 168;
export const STRIP_GUTTER = 136;
const ROW = 24;
const LANE = 9;
const MOST_LANES = 4;
const STRIP_ROW = 15;
const STRIP_LEAST = 4;
export const STRIP_AXIS = 16;

export interface RowPlace {
  readonly row: TimelineRow;
  readonly y: number;
  readonly height: number;
  /** The lane of each exchange, in order. Exchanges without a free lane share the last one. */
  readonly lanes: readonly number[];
  readonly count: number;
}

/** The rows from top to bottom. In a strip they share the height, and rows without space are omitted. */
export function placeRows(rows: readonly TimelineRow[], form: 'strip' | 'full', height: number): readonly RowPlace[] {
  const places: RowPlace[] = [];
  let y = form === 'full' ? AXIS : STRIP_AXIS;
  const each = Math.max(STRIP_LEAST, Math.min(STRIP_ROW, Math.floor((height - y) / Math.max(1, rows.length))));
  for (const row of rows) {
    const { lanes, count } = lanesOf(row.wire ?? [], form === 'full' ? MOST_LANES : 1);
    const high = form === 'full' ? Math.max(ROW, count * LANE + 8) : each;
    places.push({ row, y, height: high, lanes, count });
    y += high;
  }
  return places;
}

/** The first lane whose last exchange has ended. */
function lanesOf(
  spans: readonly WireSpan[],
  most: number,
): { readonly lanes: readonly number[]; readonly count: number } {
  const ends: number[] = [];
  const lanes = spans.map(({ at, end }) => {
    const free = ends.findIndex((ended) => ended <= at);
    const lane = free !== -1 ? free : Math.min(ends.length, most - 1);
    ends[lane] = Math.max(ends[lane] ?? 0, end ?? Number.POSITIVE_INFINITY);
    return lane;
  });
  return { lanes, count: Math.max(1, ends.length) };
}

export function rowAt(places: readonly RowPlace[], y: number): RowPlace | undefined {
  return places.find((place) => y >= place.y && y < place.y + place.height);
}
