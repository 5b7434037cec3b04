/**
 * Packs the regions of a parallel machine with many regions: each has its own layout, and rows wrap to fill the pane.
 */

import type {
  Direction,
  Pane,
  PlacedChart,
  PlacedEdge,
  PlacedNode,
  Point,
  Rect,
} from '../../../../src/features/charts/placed.ts';
import type { Sketch, SketchEdge, SketchNode } from '../../../../src/features/charts/sketch.ts';
import { exitsFor } from './exits.ts';
import { type Engine, layoutSketch } from './layout.ts';
import { type Cell, type Channel, type End, LANE, type Plan, planOf } from './plan.ts';

/** Machines with fewer regions keep columns. */
const MANY = 4;
/** The distance of two regions without a line between them. */
const GAP = 20;
const PAD = 18;

type Size = Pane;

export function isMany({ root }: Sketch): boolean {
  return root.type === 'parallel' && root.nodes.length >= MANY;
}

/** Lays out a sketch; of a machine with many regions, each region separately. */
export function layoutPacked(
  sketched: Sketch,
  direction: Direction,
  engines: readonly Engine[],
  pane: Pane,
): Promise<PlacedChart> {
  return isMany(sketched)
    ? packRegions(sketched, direction, pane, (region) => layoutPacked(region, direction, engines, pane))
    : layoutSketch(sketched, direction, engines);
}

/** Lays out a machine with many regions; `lay` lays out one region. */
async function packRegions(
  { root, edges }: Sketch,
  direction: Direction,
  pane: Pane,
  lay: (sketch: Sketch) => Promise<PlacedChart>,
): Promise<PlacedChart> {
  const homes = new Map<string, number>();
  root.nodes.forEach((region, index) => {
    note(region, index, homes);
  });
  const home = ({ from, to }: SketchEdge): number | undefined =>
    homes.get(from) === homes.get(to) ? homes.get(from) : undefined;
  const pictures: PlacedChart[] = [];
  for (const [index, region] of root.nodes.entries())
    pictures.push(await lay({ root: region, edges: edges.filter((edge) => home(edge) === index) }));
  const rows = rowsFor(pictures, pane);
  const cells: Cell[] = [];
  rows.forEach((row, at) => {
    let x = 0;
    row.forEach((index, column) => {
      const region = root.nodes[index];
      const picture = pictures[index];
      if (region === undefined || picture === undefined) return;
      cells[index] = { region, picture, row: at, column, x, leave: exitsFor(region, picture) };
      x += picture.width + GAP;
    });
  });
  const plan = planOf(
    edges.filter((edge) => home(edge) === undefined),
    (state) => cells[homes.get(state) ?? -1],
    rows,
  );
  return place(root, direction, cells, rows, plan);
}

function note(node: SketchNode, index: number, homes: Map<string, number>): void {
  homes.set(node.id, index);
  for (const child of node.nodes) note(child, index, homes);
}

/** The rows of regions, in order, that allow the largest scale. */
function rowsFor(sizes: readonly Size[], pane: Pane): readonly (readonly number[])[] {
  let best: readonly (readonly number[])[] = [];
  let largest = 0;
  for (let from = 0; from < sizes.length; from += 1) {
    let limit = -GAP;
    for (const { width } of sizes.slice(from)) {
      limit += width + GAP;
      const rows = wrap(sizes, limit);
      const { width: wide, height } = extent(rows, sizes);
      const scale = Math.min(pane.width / wide, pane.height / height);
      if (scale <= largest) continue;
      largest = scale;
      best = rows;
    }
  }
  return best;
}

function wrap(sizes: readonly Size[], limit: number): readonly (readonly number[])[] {
  const rows: number[][] = [];
  let x = 0;
  sizes.forEach(({ width }, index) => {
    const row = rows.at(-1);
    if (row !== undefined && x + width <= limit) row.push(index);
    else {
      rows.push([index]);
      x = 0;
    }
    x += width + GAP;
  });
  return rows;
}

function extent(rows: readonly (readonly number[])[], sizes: readonly Size[]): Size {
  let width = 1;
  let height = 1;
  for (const row of rows) {
    width = Math.max(width, sum(row.map((index) => (sizes[index]?.width ?? 0) + GAP)));
    height += Math.max(...row.map((index) => sizes[index]?.height ?? 0)) + GAP;
  }
  return { width, height };
}

function place(
  root: SketchNode,
  direction: Direction,
  cells: readonly Cell[],
  rows: readonly (readonly number[])[],
  { ways, gutters, channels }: Plan,
): PlacedChart {
  const nodes: PlacedNode[] = [];
  const edges: PlacedEdge[] = [];
  const corners = new Map<Cell, Point>();
  const frames = new Map<Cell, Rect>();
  /** The first lanes to the right and to the left of each region. */
  const begins = new Map<Cell, { readonly left: number; readonly right: number }>();
  const tops: number[] = [];
  const wideOf = (row: number, column: number): number => {
    const { lanes, widest } = channels[row]?.[column] ?? { lanes: 0, widest: 0 };
    return GAP + LANE * lanes + widest;
  };
  const ofRow = (row: readonly number[]): readonly Cell[] => row.flatMap((index) => cells[index] ?? []);
  const widths = rows.map(
    (row, at) =>
      sum(ofRow(row).map(({ picture }) => picture.width)) + sum((channels[at] ?? []).map((_, c) => wideOf(at, c))),
  );
  const whole = Math.max(root.width, ...widths);
  let y = 0;
  rows.forEach((row, at) => {
    tops.push(y + GAP / 2);
    y += (gutters[at] ?? 0) + (at === 0 && gutters[0] === 0 ? 0 : GAP);
    const inRow = ofRow(row);
    const high = Math.max(...inRow.map(({ picture }) => picture.height));
    const spare = Math.floor((whole - (widths[at] ?? 0)) / Math.max(1, inRow.length));
    let x = 0;
    for (const cell of inRow) {
      const left = x + firstLane(channels[at]?.[cell.column]);
      x += wideOf(at, cell.column);
      const { picture, region } = cell;
      const corner = { x: x + Math.floor(spare / 2), y };
      corners.set(cell, corner);
      begins.set(cell, { left, right: x + picture.width + spare + firstLane(channels[at]?.[cell.column + 1]) });
      for (const node of picture.nodes) {
        const isWhole = node.id === region.id && canGrow(cell);
        const box = isWhole
          ? { id: node.id, x, y, width: picture.width + spare, height: high }
          : { ...node, x: node.x + corner.x, y: node.y + corner.y };
        if (node.id === region.id) frames.set(cell, box);
        nodes.push(box);
      }
      for (const edge of picture.edges) edges.push(moved(edge, corner));
      x += picture.width + spare;
    }
    y += high;
  });
  tops.push(y + GAP / 2);
  const outOf = ({ cell, exit, lane }: End): readonly Point[] => {
    const corner = corners.get(cell) ?? { x: 0, y: 0 };
    const frame = frames.get(cell);
    const x = (begins.get(cell)?.[exit.side] ?? 0) + lane * LANE;
    const points = exit.points.map((point) => ({ x: corner.x + point.x, y: corner.y + point.y }));
    if (exit.atRegion && frame !== undefined)
      points.splice(0, 1, { x: exit.side === 'left' ? frame.x : frame.x + frame.width, y: corner.y + exit.y });
    return [...points, { x, y: corner.y + exit.y }];
  };
  const drawn = ways.map(({ edge, from, to, gutters: taken, margin, over }) => {
    const start = from === undefined ? [] : outOf(from);
    const end = to === undefined ? [] : [...outOf(to)].reverse();
    const heights = taken.map(({ gutter, down }) => Math.round((tops[gutter] ?? 0) + down));
    const outer = margin === undefined ? [] : [-LANE * margin];
    const xs = [...start.slice(-1).map(({ x }) => x), ...outer, ...end.slice(0, 1).map(({ x }) => x)];
    // Each part of the path follows a gutter, then goes up or down to the next one.
    const along = heights.flatMap((at, index) => {
      const [one = 0, other = one] = margin === undefined ? xs : xs.slice(index, index + 2);
      return [
        { x: one, y: at },
        { x: other, y: at },
      ];
    });
    const [one, other = one] = along;
    const middle = { x: Math.round(((one?.x ?? 0) + (other?.x ?? 0)) / 2), y: one?.y ?? 0 };
    if (over !== undefined && from !== undefined)
      return {
        edge,
        points: [...start, ...end],
        middle: { x: start.at(-1)?.x ?? 0, y: over + (corners.get(from.cell)?.y ?? 0) },
        opens: false,
        closes: false,
      };
    return { edge, points: [...start, ...along, ...end], middle, opens: from === undefined, closes: to === undefined };
  });
  const labelled = drawn.map(({ edge: { label }, middle, opens, closes }): Rect | undefined => {
    if (label === undefined) return undefined;
    const x = opens || closes ? Math.min(0, middle.x - label.width) : middle.x - Math.round(label.width / 2);
    return { x, y: middle.y - Math.round(label.height / 2), ...label };
  });
  const reach = [...labelled.flatMap((box) => box ?? []), ...nodes, ...edges.flatMap(({ label }) => label ?? [])];
  const xs = [...reach.flatMap(({ x, width }) => [x, x + width]), ...drawn.flatMap(({ points }) => points.map(at))];
  const left = Math.floor(Math.min(0, ...xs)) - PAD;
  const right = Math.ceil(Math.max(whole, ...xs)) + PAD;
  const top = -root.height - 8;
  const bottom = Math.ceil(y + (gutters.at(-1) ?? 0) + GAP / 2 + PAD);
  drawn.forEach(({ edge: { id }, points, opens, closes }, index) => {
    const level = points[0]?.y ?? 0;
    const line = [
      ...(opens ? [{ x: left, y: level }] : []),
      ...points,
      ...(closes ? [{ x: opens ? right : left, y: points.at(-1)?.y ?? 0 }] : []),
    ];
    const label = labelled[index];
    edges.push(label === undefined ? { id, points: line } : { id, points: line, label });
  });
  nodes.unshift({ id: root.id, x: left, y: top, width: right - left, height: bottom - top });
  const by = { x: 8 - left, y: 8 - top };
  const engines = cells.map(({ picture }) => picture.engine);
  return {
    engine: engines.find((name) => name === 'grid') ?? engines.find((name) => name === 'dagre') ?? 'elk',
    direction,
    width: right - left + 16,
    height: bottom - top + 16,
    nodes: nodes.map((node) => ({ ...node, x: node.x + by.x, y: node.y + by.y })),
    edges: edges.map((edge) => moved(edge, by)),
  };
}

function at({ x }: Point): number {
  return x;
}

/** The distance of the first lane from the left side of a channel. */
function firstLane(channel: Channel | undefined): number {
  return GAP / 2 + LANE / 2 + Math.round((channel?.widest ?? 0) / 2);
}

/** True if the frame of a region can fill its cell: nothing is beside the frame or ends at it. */
function canGrow({ region, picture }: Cell): boolean {
  const own = (id: string): boolean => id.split('\t').includes(region.id);
  return region.nodes.length > 0 && picture.engine !== 'grid' && !picture.edges.some(({ id }) => own(id));
}

function moved({ id, points, label }: PlacedEdge, by: Point): PlacedEdge {
  const line = points.map(({ x, y }) => ({ x: x + by.x, y: y + by.y }));
  return label === undefined
    ? { id, points: line }
    : { id, points: line, label: { ...label, x: label.x + by.x, y: label.y + by.y } };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
