/** The routes of lines between packed regions: out of one region, along channels and gutters, into the other. */

import type { PlacedChart } from '../../../../src/features/charts/placed.ts';
import type { SketchEdge, SketchNode } from '../../../../src/features/charts/sketch.ts';
import type { Exit } from './exits.ts';

/** The distance of two parallel lines. */
export const LANE = 12;

/** One region and its cell in the rows. */
export interface Cell {
  readonly region: SketchNode;
  readonly picture: PlacedChart;
  readonly row: number;
  readonly column: number;
  /** Approximate, for the choice of sides. */
  readonly x: number;
  readonly leave: (state: string, towards: number) => Exit;
}

/**
 * The end of a line with its lane beside its region; absent for the machine itself, where the lane ends at the border.
 */
export interface End {
  readonly cell: Cell;
  readonly exit: Exit;
  readonly lane: number;
}

export interface Way {
  readonly edge: SketchEdge;
  readonly from: End | undefined;
  readonly to: End | undefined;
  /** The gutters along its route, with the depth in each. */
  readonly gutters: readonly { readonly gutter: number; readonly down: number }[];
  /** Its lane to the left of all rows, if it passes rows. */
  readonly margin: number | undefined;
  /**
   * The position of its label below the upper end of the row, if it goes straight to the next region without a gutter.
   */
  readonly over: number | undefined;
}

export interface Plan {
  readonly ways: readonly Way[];
  /** The total height of the lanes in each gutter: above the first row, between rows, below the last. */
  readonly gutters: readonly number[];
  /** The number of vertical lanes on both sides of each region, for each row. */
  readonly channels: readonly (readonly Channel[])[];
}

/** The space on one side of a region. */
export interface Channel {
  readonly lanes: number;
  /** The width of its widest label. */
  readonly widest: number;
}

/** A label in a channel. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/**
 * Plans the route of each line between regions. Each route has lanes of its own, so that neither lines nor labels
 * overlap.
 */
export function planOf(
  edges: readonly SketchEdge[],
  cellOf: (state: string) => Cell | undefined,
  rows: readonly (readonly number[])[],
): Plan {
  const gutters: number[] = [0, ...rows.map(() => 0)];
  const channels = rows.map((row) => [0, ...row].map(() => ({ lanes: 0, widest: 0, labels: [] as Stretch[] })));
  let margins = 0;
  const exitOf = (state: string, cell: Cell | undefined, other: Cell | undefined): Omit<End, 'lane'> | undefined =>
    cell === undefined ? undefined : { cell, exit: cell.leave(state, (other ?? cell).x - cell.x) };
  const channelOf = ({ cell, exit }: Omit<End, 'lane'>) =>
    channels[cell.row]?.[cell.column + (exit.side === 'right' ? 1 : 0)];
  const laneOf = (end: Omit<End, 'lane'> | undefined): End | undefined => {
    const channel = end === undefined ? undefined : channelOf(end);
    if (end === undefined || channel === undefined) return undefined;
    channel.lanes += 1;
    return { ...end, lane: channel.lanes - 1 };
  };
  const ways = edges.map((edge): Way => {
    const [first, last] = [cellOf(edge.from), cellOf(edge.to)];
    const leaves = exitOf(edge.from, first, last);
    const comes = exitOf(edge.to, last, first);
    const channel = leaves === undefined ? undefined : channelOf(leaves);
    if (leaves !== undefined && comes !== undefined && channel !== undefined && channel === channelOf(comes)) {
      const { width = 0, height = 0 } = edge.label ?? {};
      const over = freePlace(leaves.exit.y, comes.exit.y, height / 2 + 3, channel.labels);
      if (over !== undefined) {
        channel.labels.push({ from: over - height / 2 - 3, to: over + height / 2 + 3 });
        channel.widest = Math.max(channel.widest, width);
        const from = laneOf(leaves);
        const to = from === undefined ? undefined : { ...comes, lane: from.lane };
        return { edge, from, to, gutters: [], margin: undefined, over };
      }
    }
    const from = laneOf(leaves);
    const to = laneOf(comes);
    const wanted = guttersOf(from, to);
    const room = (edge.label?.height ?? 0) + LANE;
    const taken = wanted.map((gutter, index) => {
      // The first lane has the label.
      const high = index === 0 ? room : LANE;
      const down = (gutters[gutter] ?? 0) + high / 2;
      gutters[gutter] = (gutters[gutter] ?? 0) + high;
      return { gutter, down };
    });
    if (taken.length > 1) margins += 1;
    return { edge, from, to, gutters: taken, margin: taken.length > 1 ? margins : undefined, over: undefined };
  });
  return { ways, gutters, channels };
}

/** The position between two heights that is nearest to their middle and free of labels. */
function freePlace(one: number, other: number, half: number, labels: readonly Stretch[]): number | undefined {
  const middle = Math.round((one + other) / 2);
  const reach = Math.abs(one - other) / 2;
  for (let by = 0; by <= reach; by += 4)
    for (const at of [middle - by, middle + by])
      if (labels.every(({ from, to }) => at + half <= from || at - half >= to)) return at;
  return undefined;
}

function guttersOf(from: End | undefined, to: End | undefined): readonly number[] {
  const one = from ?? to;
  const other = to ?? from;
  if (one === undefined || other === undefined) return [0];
  const [row, next] = [one.cell.row, other.cell.row];
  if (row === next) {
    const middle = (one.cell.picture.height + other.cell.picture.height) / 2;
    return [one.exit.y + other.exit.y > middle ? row + 1 : row];
  }
  if (Math.abs(row - next) === 1) return [Math.max(row, next)];
  return row < next ? [row + 1, next] : [row, next + 1];
}
