/** Charts for the tests of their layout: random ones, and what is wrong with a picture. */
import * as fc from 'fast-check';
import type { PlacedChart, PlacedNode, Point, Rect } from '../../../src/features/charts/placed.ts';
import { isDot } from '../../../src/features/charts/placed.ts';
import { groupsOf } from '../../../src/features/charts/sketch.ts';
import type { ChartEdge, ChartNode } from '../../../src/inspector/frames.ts';

/** About seven pixels a character, as the page's fonts are. */
export const measure = (text: string): number => text.length * 6.6;

interface Shape {
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  readonly invokes: number;
  readonly nodes: readonly Shape[];
}

const leaf: fc.Arbitrary<Shape> = fc.record({
  type: fc.constantFrom('atomic' as const, 'atomic' as const, 'atomic' as const, 'final' as const, 'history' as const),
  invokes: fc.nat(1),
  nodes: fc.constant([]),
});

function shapes(depth: number): fc.Arbitrary<Shape> {
  if (depth === 0) return leaf;
  const inner = shapes(depth - 1);
  const nested = (type: 'compound' | 'parallel'): fc.Arbitrary<Shape> =>
    fc.record({
      type: fc.constant(type),
      invokes: fc.nat(1),
      nodes: fc.array(inner, { minLength: 1, maxLength: type === 'parallel' ? 3 : 4 }),
    });
  return fc.oneof(
    { weight: 4, arbitrary: leaf },
    { weight: 2, arbitrary: nested('compound') },
    { weight: 1, arbitrary: nested('parallel') },
  );
}

/** Random charts: nested, parallel, with lines between any two states, also of a state to itself, to one in it and to one around it. */
export const charts: fc.Arbitrary<ChartNode> = chartsOf(['compound', 'parallel'], 1, 5);
/** Of the same kind, and of so many regions that they are packed. */
export const packed: fc.Arbitrary<ChartNode> = chartsOf(['parallel'], 4, 7);

function chartsOf(
  types: readonly ('compound' | 'parallel')[],
  minLength: number,
  maxLength: number,
): fc.Arbitrary<ChartNode> {
  return fc
    .record({
      type: fc.constantFrom(...types),
      nodes: fc.array(shapes(2), { minLength, maxLength }),
      lines: fc.array(
        fc.record({
          from: fc.nat(),
          to: fc.nat(),
          guard: fc.boolean(),
          word: fc.string({ minLength: 1, maxLength: 40 }),
        }),
        {
          maxLength: 16,
        },
      ),
    })
    .map(({ type, nodes, lines }) => grow({ type, invokes: 0, nodes }, lines));
}

interface Wish {
  readonly from: number;
  readonly to: number;
  readonly guard: boolean;
  readonly word: string;
}

export function grow(shape: Shape, lines: readonly Wish[]): ChartNode {
  const paths: string[] = [];
  const name = (node: Shape, path: string): void => {
    paths.push(path);
    for (const [index, child] of node.nodes.entries()) name(child, path === '' ? `s${index}` : `${path}.s${index}`);
  };
  name(shape, '');
  const leaving = new Map<string, ChartEdge[]>();
  for (const { from, to, guard, word } of lines) {
    const source = paths[from % paths.length] ?? '';
    const target = paths[to % paths.length] ?? '';
    const own = leaving.get(source) ?? [];
    own.push({
      id: `${source}#${own.length}`,
      on: word,
      label: word,
      ...(guard ? { guard: 'isAllowed' } : {}),
      targets: target === '' ? [] : [target],
    });
    leaving.set(source, own);
  }
  const build = (node: Shape, path: string, key: string, initial: boolean): ChartNode => ({
    key,
    path,
    type: node.type,
    initial,
    invokes: Array.from({ length: node.invokes }, (_, index) => `work${index}`),
    edges: node.type === 'history' ? [] : (leaving.get(path) ?? []),
    nodes: node.nodes.map((child, index) =>
      build(
        child,
        path === '' ? `s${index}` : `${path}.s${index}`,
        `s${index}`,
        index === 0 || node.type === 'parallel',
      ),
    ),
  });
  return build(shape, '', 'machine', true);
}

/** What is wrong with a picture; nothing, if it is as it ought to be. */
export function faults(chart: ChartNode, placed: PlacedChart): readonly string[] {
  const boxes = new Map(placed.nodes.map((node) => [node.id, node]));
  const wrong: string[] = [];
  const whole: Rect = { x: 0, y: 0, width: placed.width, height: placed.height };
  const visit = (node: ChartNode, around: Rect): void => {
    const box = boxes.get(node.path);
    if (box === undefined) {
      wrong.push(`${node.path} has no box`);
      return;
    }
    if (!isWithin(box, around))
      wrong.push(`${node.path} is not within what is around it: ${show(box)} in ${show(around)}`);
    const inner = node.nodes.flatMap(({ path }) => boxes.get(path) ?? []);
    const dot = placed.nodes.filter(({ id }) => id === `${node.path}\n`);
    const siblings: readonly PlacedNode[] = [...inner, ...dot];
    siblings.forEach((one, index) => {
      for (const other of siblings.slice(index + 1))
        if (overlap(one, other)) wrong.push(`${one.id} and ${other.id} overlap`);
    });
    for (const child of node.nodes) visit(child, box);
  };
  visit(chart, whole);
  const simple = placed.nodes.filter(({ id }) => isDot(id) || leaves(chart).has(id));
  const labels = placed.edges.flatMap(({ id, label }) => (label === undefined ? [] : [{ id, label }]));
  labels.forEach(({ id, label }, index) => {
    if (!isWithin(label, whole)) wrong.push(`the label of ${id} is not in the picture`);
    for (const node of simple) if (overlap(label, node)) wrong.push(`the label of ${id} is over ${node.id}`);
    for (const other of labels.slice(index + 1))
      if (overlap(label, other.label)) wrong.push(`the labels of ${id} and ${other.id} overlap`);
  });
  return wrong;
}

/** The lines that are aslant, and those that begin or end away from their states. */
export function strays(chart: ChartNode, placed: PlacedChart): readonly string[] {
  const boxes = new Map(placed.nodes.map((node) => [node.id, node]));
  const lines = new Map(placed.edges.map((edge) => [edge.id, edge.points]));
  const moved = regions(chart);
  const labels = new Map(placed.edges.map(({ id, label }) => [id, label]));
  return groupsOf(chart).flatMap(({ id, from, to }) => {
    const points = lines.get(id) ?? [];
    const aslant = points.some((point, index) => {
      const before = points[index - 1];
      return before !== undefined && before.x !== point.x && before.y !== point.y;
    });
    const wrong = aslant ? [`${id} is aslant`] : [];
    // The states of a parallel one have got the whole of their column or row since.
    if (!moved.has(from) && !isAtBorder(points[0], boxes.get(from))) wrong.push(`${id} begins away from its state`);
    if (!moved.has(to) && !isAtBorder(points.at(-1), boxes.get(to))) wrong.push(`${id} ends away from its state`);
    if (from !== to && !isOnLine(labels.get(id), points)) wrong.push(`the label of ${id} is not on its line`);
    return wrong;
  });
}

/** The line goes through the middle of its label. */
function isOnLine(label: Rect | undefined, points: readonly Point[]): boolean {
  if (label === undefined) return true;
  const x = label.x + label.width / 2;
  const y = label.y + label.height / 2;
  return points.some((to, index) => {
    const from = points[index - 1];
    if (from === undefined) return false;
    const across =
      from.y === to.y && Math.abs(from.y - y) <= 2 && Math.min(from.x, to.x) <= x && Math.max(from.x, to.x) >= x;
    const down =
      from.x === to.x && Math.abs(from.x - x) <= 2 && Math.min(from.y, to.y) <= y && Math.max(from.y, to.y) >= y;
    return across || down;
  });
}

function regions(node: ChartNode): ReadonlySet<string> {
  const own = node.type === 'parallel' ? node.nodes.map(({ path }) => path) : [];
  return new Set([...own, ...node.nodes.flatMap((child) => [...regions(child)])]);
}

function isAtBorder(point: Point | undefined, box: Rect | undefined): boolean {
  if (point === undefined || box === undefined) return false;
  const { x, y } = point;
  const inside = x >= box.x - 2 && x <= box.x + box.width + 2 && y >= box.y - 2 && y <= box.y + box.height + 2;
  const nearest = Math.min(...[x - box.x, box.x + box.width - x, y - box.y, box.y + box.height - y].map(Math.abs));
  return inside && nearest <= 2;
}

/** A machine of so many states in groups of six, and so many transitions, most of them to a state near by. */
export function large(states: number, transitions: number): ChartNode {
  const groups = Math.max(1, Math.floor(states / 7));
  const atomic = { type: 'atomic', invokes: 0, nodes: [] } as const;
  const shape: Shape = {
    type: 'compound',
    invokes: 0,
    nodes: Array.from({ length: groups }, () => ({
      type: 'compound',
      invokes: 0,
      nodes: Array.from({ length: 6 }, () => atomic),
    })),
  };
  const all = groups * 7 + 1;
  return grow(
    shape,
    Array.from({ length: transitions }, (_, index) => ({
      from: 1 + (index % (all - 1)),
      to: 1 + ((index + 1 + Math.floor(index / (all - 1)) + (index % 9 === 0 ? 17 : 0)) % (all - 1)),
      guard: index % 3 === 0,
      word: `event${index}`,
    })),
  );
}

/** A parallel machine of regions with twelve states each, and lines within them and from each to others. */
export function parallel(count: number): ChartNode {
  const atomic = { type: 'atomic', invokes: 0, nodes: [] } as const;
  const region = { type: 'compound', invokes: 0, nodes: Array.from({ length: 12 }, () => atomic) } as const;
  const at = (of: number, state: number): number => 2 + (of % count) * 13 + (state % 12);
  const regions = Array.from({ length: count }, (_, index) => index);
  return grow(
    { type: 'parallel', invokes: 0, nodes: regions.map(() => region) },
    regions.flatMap((of) => [
      ...region.nodes.map((_, state) => ({ from: at(of, state), to: at(of, state + 1), guard: false, word: 'next' })),
      { from: at(of, 1), to: at(of, 5), guard: false, word: 'skip' },
      { from: at(of, 3), to: at(of + 1, 4), guard: false, word: 'jump' },
      { from: at(of, 8), to: at(of + 3, 2), guard: true, word: 'over there' },
      { from: at(of, 6), to: at(of + 2, 0) - 1, guard: false, word: 'anew' },
      { from: 0, to: at(of, 9), guard: false, word: `reset${of}` },
    ]),
  );
}

function leaves(node: ChartNode): ReadonlySet<string> {
  return new Set(node.nodes.length === 0 ? [node.path] : node.nodes.flatMap((child) => [...leaves(child)]));
}

/** Boxes that only touch do not overlap. */
function overlap(a: Rect, b: Rect): boolean {
  return a.x + a.width > b.x + 1 && b.x + b.width > a.x + 1 && a.y + a.height > b.y + 1 && b.y + b.height > a.y + 1;
}

function isWithin(inner: Rect, outer: Rect): boolean {
  return (
    inner.x >= outer.x - 1 &&
    inner.y >= outer.y - 1 &&
    inner.x + inner.width <= outer.x + outer.width + 1 &&
    inner.y + inner.height <= outer.y + outer.height + 1
  );
}

function show({ x, y, width, height }: Rect): string {
  return `${x},${y} ${width}×${height}`;
}
