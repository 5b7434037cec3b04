/** Lines with rounded corners, and the heads of arrows, as the path data of SVG. */
import type { Point, Rect } from './placed.ts';

const ROUND = 9;
const HEAD = 8;
const HALF = 4;

/** The path along the points with rounded corners; it ends at the arrow head. */
export function roundedPath(points: readonly Point[], headed: boolean): string {
  const way = headed ? shorten(points, HEAD - 1) : points;
  const [first, ...rest] = way;
  if (first === undefined) return '';
  let path = `M${first.x} ${first.y}`;
  rest.forEach((corner, index) => {
    const before = way[index] ?? first;
    const after = way[index + 2];
    if (after === undefined) {
      path += `L${corner.x} ${corner.y}`;
      return;
    }
    const round = Math.min(ROUND, distance(before, corner) / 2, distance(corner, after) / 2);
    const from = towards(corner, before, round);
    const to = towards(corner, after, round);
    path += `L${from.x} ${from.y}Q${corner.x} ${corner.y} ${to.x} ${to.y}`;
  });
  return path;
}

/** The arrow's head at the end of a line. */
export function headPath(points: readonly Point[]): string {
  const tip = points.at(-1);
  const before = points.at(-2);
  if (tip === undefined || before === undefined) return '';
  const back = towards(tip, before, HEAD);
  const length = distance(before, tip) || 1;
  const across = { x: (-(tip.y - before.y) / length) * HALF, y: ((tip.x - before.x) / length) * HALF };
  return `M${tip.x} ${tip.y}L${back.x + across.x} ${back.y + across.y}L${back.x - across.x} ${back.y - across.y}Z`;
}

export function contains(around: Rect, { x, y }: Point): boolean {
  return x >= around.x && y >= around.y && x <= around.x + around.width && y <= around.y + around.height;
}

export function middleOf({ x, y, width, height }: Rect): Point {
  return { x: x + width / 2, y: y + height / 2 };
}

function shorten(points: readonly Point[], by: number): readonly Point[] {
  const last = points.at(-1);
  const before = points.at(-2);
  if (last === undefined || before === undefined) return points;
  return [...points.slice(0, -1), towards(last, before, Math.min(by, distance(last, before)))];
}

function towards(from: Point, to: Point, by: number): Point {
  const length = distance(from, to) || 1;
  return { x: from.x + ((to.x - from.x) / length) * by, y: from.y + ((to.y - from.y) / length) * by };
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}
