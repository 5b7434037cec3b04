/** A measure of the readability of a picture: crossings first, then turns, then the distance for the eye. */
import type { PlacedChart, Point } from '../../../../src/features/charts/placed.ts';

const CROSSING = 8;
/** A turn at the beginning or the end of a line counts fully, even if the line could be straight. */
const TURN = 1;
const LENGTH = 1 / 260;

interface Part {
  readonly line: number;
  readonly from: Point;
  readonly to: Point;
}

export function costOf({ edges, width, height }: PlacedChart): number {
  const level: Part[] = [];
  const upright: Part[] = [];
  let turns = 0;
  let length = 0;
  edges.forEach(({ points }, line) => {
    turns += Math.max(0, points.length - 2);
    points.forEach((to, index) => {
      const from = points[index - 1];
      if (from === undefined) return;
      length += Math.abs(to.x - from.x) + Math.abs(to.y - from.y);
      (from.y === to.y ? level : upright).push({ line, from, to });
    });
  });
  let crossings = 0;
  for (const one of level)
    for (const other of upright) if (one.line !== other.line && cross(one, other)) crossings += 1;
  return crossings * CROSSING + turns * TURN + (length + width + height) * LENGTH;
}

function cross(level: Part, upright: Part): boolean {
  const { x } = upright.from;
  const { y } = level.from;
  return (
    x > Math.min(level.from.x, level.to.x) &&
    x < Math.max(level.from.x, level.to.x) &&
    y > Math.min(upright.from.y, upright.to.y) &&
    y < Math.max(upright.from.y, upright.to.y)
  );
}
