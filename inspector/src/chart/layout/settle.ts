/** Post-processing of every layout: whole pixels, straight lines, and columns for the regions of parallel states. */
import {
  isDot,
  type PlacedChart,
  type PlacedEdge,
  type PlacedNode,
  type Point,
  type Rect,
} from '../../../../src/features/charts/placed.ts';
import type { Sketch, SketchNode } from '../../../../src/features/charts/sketch.ts';
import { centreLabel, straightenEnds } from './ports.ts';

/** Steps in a line that are shorter than this are removed. */
const JOG = 6;

export function settle(placed: PlacedChart, { root, edges: ends }: Sketch): PlacedChart {
  const nodes = new Map(placed.nodes.map((node) => [node.id, { ...node, ...onPixels(node) }]));
  const lines = placed.edges.map(({ id, points, label }): PlacedEdge => {
    const crisp = points.map(({ x, y }) => ({ x: Math.round(x), y: Math.round(y) }));
    const straight = straighten(withoutJogs(straighten(crisp), isDot(id)));
    return label === undefined || isDot(id)
      ? { id, points: straight }
      : { id, points: straight, label: onPixels(label) };
  });
  // Only ELK's lines consist of horizontal and vertical segments.
  const edges = placed.engine === 'elk' ? straightenEnds(lines, ends, nodes) : lines;
  alignRegions(root, nodes);
  return {
    ...placed,
    width: Math.ceil(placed.width),
    height: Math.ceil(placed.height),
    nodes: [...nodes.values()],
    edges: edges.map((edge) => {
      const straight = { ...edge, points: straighten(edge.points) };
      return placed.engine === 'elk' ? centreLabel(straight) : straight;
    }),
  };
}

/** Rounds edges, not sizes, so that adjacent boxes stay adjacent. */
function onPixels({ x, y, width, height }: Rect): Rect {
  const left = Math.round(x);
  const top = Math.round(y);
  return { x: left, y: top, width: Math.round(x + width) - left, height: Math.round(y + height) - top };
}

/**
 * The regions of a parallel state fill its columns or rows, so that only separators between them are drawn. Other
 * arrangements stay unchanged.
 */
function alignRegions(node: SketchNode, nodes: Map<string, PlacedNode>): void {
  for (const child of node.nodes) alignRegions(child, nodes);
  const around = nodes.get(node.id);
  // A region without states stays a box.
  if (node.type !== 'parallel' || around === undefined || node.nodes.some(({ nodes: inner }) => inner.length === 0))
    return;
  const regions = node.nodes.flatMap(({ id }) => nodes.get(id) ?? []);
  const top = around.y + node.height;
  const bottom = around.y + around.height;
  const right = around.x + around.width;
  const across = [...regions].sort((a, b) => a.x - b.x);
  const down = [...regions].sort((a, b) => a.y - b.y);
  if (across.every((region, index) => index === 0 || endX(across[index - 1]) <= region.x)) {
    const borders = across.slice(1).map((region, index) => Math.round((endX(across[index]) + region.x) / 2));
    across.forEach((region, index) => {
      const x = borders[index - 1] ?? around.x;
      nodes.set(region.id, { ...region, x, y: top, width: (borders[index] ?? right) - x, height: bottom - top });
    });
  } else if (down.every((region, index) => index === 0 || endY(down[index - 1]) <= region.y)) {
    const borders = down.slice(1).map((region, index) => Math.round((endY(down[index]) + region.y) / 2));
    down.forEach((region, index) => {
      const y = borders[index - 1] ?? top;
      nodes.set(region.id, { ...region, x: around.x, y, width: around.width, height: (borders[index] ?? bottom) - y });
    });
  }
}

function endX(box: Rect | undefined): number {
  return box === undefined ? 0 : box.x + box.width;
}

function endY(box: Rect | undefined): number {
  return box === undefined ? 0 : box.y + box.height;
}

/** Removes the points in the middle of a straight line. */
function straighten(points: readonly Point[]): readonly Point[] {
  const kept: Point[] = [];
  for (const point of points) {
    const last = kept.at(-1);
    const before = kept.at(-2);
    if (last !== undefined && last.x === point.x && last.y === point.y) continue;
    const onLine =
      last !== undefined &&
      before !== undefined &&
      ((before.x === last.x && last.x === point.x) || (before.y === last.y && last.y === point.y));
    if (onLine) kept.pop();
    kept.push(point);
  }
  return kept;
}

/** Merges two segments that are nearly in line. The ends stay on their sides and move by at most a step. */
function withoutJogs(points: readonly Point[], fromDot: boolean): readonly Point[] {
  const line = [...points];
  for (let index = 1; index + 2 < line.length; index += 1) {
    const [before, from, to, after] = line.slice(index - 1, index + 3);
    if (before === undefined || from === undefined || to === undefined || after === undefined) continue;
    const sideways = before.x === from.x && to.x === after.x && from.y === to.y && Math.abs(from.x - to.x) <= JOG;
    const upright = before.y === from.y && to.y === after.y && from.x === to.x && Math.abs(from.y - to.y) <= JOG;
    if (!sideways && !upright) continue;
    // The segment without an end at a state moves; of two with ends, the one at the source, unless that is a dot.
    const moveAfter = fromDot || index + 2 < line.length - 1;
    const onto = moveAfter ? before : after;
    const put = (point: Point): Point => (sideways ? { x: onto.x, y: point.y } : { x: point.x, y: onto.y });
    if (moveAfter) line.splice(index + 1, 2, put(to), put(after));
    else line.splice(index - 1, 2, put(before), put(from));
  }
  return line;
}
