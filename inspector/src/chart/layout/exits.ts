/**
 * The path of a line out of a region: sideways from its state, or a little up or down first, where the fewest boxes and
 * lines are in the way.
 */
import type { PlacedChart, Point, Rect } from '../../../../src/features/charts/placed.ts';
import type { SketchNode } from '../../../../src/features/charts/sketch.ts';

/** The path out of a region, relative to the corner of its picture. */
export interface Exit {
  readonly side: 'left' | 'right';
  /** From the state to the point where it only goes sideways. */
  readonly points: readonly Point[];
  /** The height at which it goes sideways. */
  readonly y: number;
  /** True if it begins at the frame of the region. */
  readonly atRegion: boolean;
}

const STEP = 6;
/** Maximum detour up or down past a neighbour of the state. */
const FAR = 240;
const CLEAR = 5;
/** Minimum distance of two parallel lines. */
const APART = 9;
/** Costs of a path in pixels: through a box, over a line, and across the state from its preferred side. */
const THROUGH = 1_000;
const OVER = 300;
const AWAY = 60;
const TURN = 30;

/** Finds the exits of one region, one after the other: each keeps clear of the earlier ones. */
export function exitsFor(region: SketchNode, picture: PlacedChart): (state: string, towards: number) => Exit {
  const boxes = new Map(picture.nodes.map((node) => [node.id, node]));
  const simple = simpleIn(region).flatMap((id) => boxes.get(id) ?? []);
  const labels = picture.edges.flatMap(({ label }) => label ?? []);
  const lines = picture.edges.flatMap(({ points }) =>
    points.flatMap((to, index) => {
      const from = points[index - 1];
      return from === undefined ? [] : [boxOf(from, to)];
    }),
  );
  return (state, towards) => {
    const box = boxes.get(state) ?? { x: 0, y: 0, width: 0, height: 0 };
    const atRegion = state === region.id;
    const costOf = (parts: readonly Rect[]): number => {
      let cost = 0;
      for (const part of parts) {
        for (const other of simple)
          if ((other.id !== state && touches(part, other, CLEAR)) || isInside(part, other)) cost += THROUGH;
        for (const label of labels) if (touches(part, label, 2)) cost += THROUGH / 2;
        for (const line of lines) if (runsOver(part, line)) cost += OVER;
      }
      return cost;
    };
    let best: Exit | undefined;
    let least = Number.POSITIVE_INFINITY;
    let taken: readonly Rect[] = [];
    for (const side of ['right', 'left'] as const) {
      const away = (side === 'right') === towards < 0 && towards !== 0 ? AWAY : 0;
      const border = side === 'right' ? picture.width : 0;
      for (const points of candidates(box, side, atRegion, picture)) {
        const last = points.at(-1);
        const [first] = points;
        if (last === undefined || first === undefined) continue;
        const parts = [...(points.length > 1 ? [boxOf(first, last)] : []), boxOf(last, { x: border, y: last.y })];
        const cost =
          away + (points.length - 1) * TURN + Math.abs(last.y - (box.y + box.height / 2)) / 2 + costOf(parts);
        if (cost >= least) continue;
        least = cost;
        taken = parts;
        best = { side, points, y: last.y, atRegion };
      }
    }
    lines.push(...taken);
    return best ?? { side: 'right', points: [box], y: box.y, atRegion };
  };
}

function* candidates(
  box: Rect,
  side: Exit['side'],
  atRegion: boolean,
  { height }: PlacedChart,
): Generator<readonly Point[]> {
  const x = Math.round(side === 'right' ? box.x + box.width : box.x);
  const upper = Math.round(box.y);
  const lower = Math.round(box.y + box.height);
  const inset = Math.min(8, Math.floor(box.height / 2));
  for (let y = upper + inset; y <= lower - inset; y += STEP) yield [{ x, y }];
  if (atRegion) return;
  for (const part of [1 / 4, 1 / 2, 3 / 4]) {
    const from = Math.round(box.x + box.width * part);
    for (let by = 2 * STEP; by <= FAR; by += STEP) {
      if (lower + by < height - 12)
        yield [
          { x: from, y: lower },
          { x: from, y: lower + by },
        ];
      if (upper - by > 12)
        yield [
          { x: from, y: upper },
          { x: from, y: upper - by },
        ];
    }
  }
}

function simpleIn(node: SketchNode): readonly string[] {
  return node.nodes.length === 0 ? [node.id] : node.nodes.flatMap(simpleIn);
}

function boxOf(a: Point, b: Point): Rect {
  return { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
}

function touches(a: Rect, b: Rect, by: number): boolean {
  return a.x < b.x + b.width + by && b.x < a.x + a.width + by && a.y < b.y + b.height + by && b.y < a.y + a.height + by;
}

/** True if a part of a line goes through the box itself, not only along or up to its side. */
function isInside(part: Rect, box: Rect): boolean {
  return touches(part, box, -1);
}

/** True if two parts of lines overlap in the same direction. */
function runsOver(one: Rect, other: Rect): boolean {
  const sameWay = one.height === 0 ? other.height === 0 : other.width === 0;
  return sameWay && touches(one, other, APART);
}
