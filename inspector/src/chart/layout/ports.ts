/** Moves the ends of lines towards their other ends: engines spread the ends evenly, which adds needless steps. */
import type { PlacedEdge, PlacedNode, Point, Rect } from '../../../../src/features/charts/placed.ts';

/** Minimum distance of two ends, and of an end from the corner of its state. */
const APART = 12;

interface Line {
  readonly id: string;
  points: readonly Point[];
  readonly label: Rect | undefined;
}

interface Ends {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** Removes the last step of each line if that makes no crossing and leaves space between the ends. */
export function straightenEnds(
  edges: readonly PlacedEdge[],
  ends: readonly Ends[],
  nodes: ReadonlyMap<string, PlacedNode>,
): readonly PlacedEdge[] {
  const lines: Line[] = edges.map(({ id, points, label }) => ({ id, points, label }));
  const of = new Map(ends.map((end) => [end.id, end]));
  for (const line of lines) {
    const { from, to } = of.get(line.id) ?? { from: '', to: '' };
    // A self-transition, or a line to an ancestor, stays unchanged: its ends may be on two sides of a border.
    if (from === to || !isApart(nodes.get(from), nodes.get(to))) continue;
    line.points = withoutLastStep(line, line.points, nodes.get(to), lines);
    const back = [...line.points].reverse();
    line.points = [...withoutLastStep(line, back, nodes.get(from), lines)].reverse();
  }
  return lines.map(({ id, points, label }) => (label === undefined ? { id, points } : { id, points, label }));
}

function isApart(one: Rect | undefined, other: Rect | undefined): boolean {
  return one !== undefined && other !== undefined && !isIn(one, other) && !isIn(other, one);
}

function isIn(inner: Rect, outer: Rect): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

function withoutLastStep(
  line: Line,
  points: readonly Point[],
  node: Rect | undefined,
  lines: readonly Line[],
): readonly Point[] {
  const [before, turn, step, end] = points.slice(-4);
  if (before === undefined || turn === undefined || step === undefined || end === undefined || node === undefined)
    return points;
  const upright = before.x === turn.x && turn.y === step.y && step.x === end.x;
  const level = before.y === turn.y && turn.x === step.x && step.y === end.y;
  if (upright === level) return points;
  // The label stays on its line.
  if (
    line.label !== undefined &&
    (touches(line.label, boxOf(turn, step), 0) || touches(line.label, boxOf(step, end), 0))
  )
    return points;
  const straight: Point = upright ? { x: turn.x, y: end.y } : { x: end.x, y: turn.y };
  const [place, start, length] = upright ? [straight.x, node.x, node.width] : [straight.y, node.y, node.height];
  if (place < start + APART || place > start + length - APART) return points;
  const path = boxOf(turn, straight);
  const free = lines.every(({ id, points: others, label }) => {
    if (id === line.id) return true;
    if (label !== undefined && touches(path, label, 2)) return false;
    return others.every((point, index) => {
      const next = others[index + 1];
      if (next !== undefined && touches(path, boxOf(point, next), upright === (point.x === next.x) ? APART - 4 : 0))
        return false;
      const isEnd = index === 0 || next === undefined;
      return !isEnd || Math.hypot(point.x - straight.x, point.y - straight.y) >= APART;
    });
  });
  return free ? [...points.slice(0, -3), straight] : points;
}

/** Moves a label to the middle of its segment. */
export function centreLabel({ id, points, label }: PlacedEdge): PlacedEdge {
  if (label === undefined) return { id, points };
  for (const [index, to] of points.entries()) {
    const from = points[index - 1];
    if (from === undefined || !touches(label, boxOf(from, to), 0)) continue;
    const { x, y, width, height } = label;
    const isUpright = from.x === to.x;
    if (isUpright ? Math.abs(from.y - to.y) < height : Math.abs(from.x - to.x) < width) continue;
    const centred = isUpright ? { x: from.x - Math.round(width / 2), y } : { x, y: from.y - Math.round(height / 2) };
    return { id, points, label: { ...label, ...centred } };
  }
  return { id, points, label };
}

function boxOf(a: Point, b: Point): Rect {
  return { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
}

function touches(a: Rect, b: Rect, by: number): boolean {
  return (
    a.x <= b.x + b.width + by && b.x <= a.x + a.width + by && a.y <= b.y + b.height + by && b.y <= a.y + a.height + by
  );
}
