/**
 * Lays out a sketch with dagre, from the innermost states outwards: plainer than ELK, but it never fails on nested
 * states.
 */
import { Graph, layout } from '@dagrejs/dagre';
import type {
  Direction,
  PlacedChart,
  PlacedEdge,
  PlacedNode,
  Point,
  Rect,
} from '../../../../src/features/charts/placed.ts';
import type { Sketch, SketchEdge, SketchNode } from '../../../../src/features/charts/sketch.ts';

const PAD = 18;

interface Inside {
  readonly width: number;
  readonly height: number;
  /** The positions of its direct children. */
  readonly boxes: ReadonlyMap<string, Rect>;
  readonly edges: readonly PlacedEdge[];
}

export function dagreLayout({ root, edges }: Sketch, direction: Direction): PlacedChart {
  const parents = new Map<string, SketchNode>();
  const note = (node: SketchNode): void => {
    for (const child of node.nodes) {
      parents.set(child.id, node);
      note(child);
    }
  };
  note(root);
  const insides = new Map<string, Inside>();
  const arrange = (node: SketchNode): { readonly width: number; readonly height: number } => {
    if (node.nodes.length === 0) return node;
    const sizes = node.nodes.map((child) => ({ id: child.id, ...sizeOf(arrange(child)) }));
    const own = edges.flatMap((edge) => lifted(edge, node, parents));
    const inside = runDagre(sizes, own, direction);
    insides.set(node.id, inside);
    return {
      width: Math.max(node.width, inside.width + 2 * PAD),
      height: node.height + inside.height + 2 * PAD,
    };
  };
  const self = edges.filter(({ from, to }) => from === to && from === root.id);
  const whole = runDagre([{ id: root.id, ...sizeOf(arrange(root)) }], self, direction);
  const nodes: PlacedNode[] = [];
  const placed: PlacedEdge[] = whole.edges.map((edge) => moved(edge, { x: 8, y: 8 }));
  const place = (node: SketchNode, box: Rect): void => {
    nodes.push({ id: node.id, ...box });
    const inside = insides.get(node.id);
    if (inside === undefined) return;
    const corner = { x: box.x + (box.width - inside.width) / 2, y: box.y + node.height + PAD };
    placed.push(...inside.edges.map((edge) => moved(edge, corner)));
    for (const child of node.nodes) {
      const inner = inside.boxes.get(child.id);
      if (inner !== undefined) place(child, { ...inner, x: corner.x + inner.x, y: corner.y + inner.y });
    }
  };
  const box = whole.boxes.get(root.id);
  if (box !== undefined) place(root, { ...box, x: box.x + 8, y: box.y + 8 });
  return {
    engine: 'dagre',
    direction,
    width: whole.width + 16,
    height: whole.height + 16,
    nodes,
    edges: placed.map((edge) => reachIn(edge, edges, nodes)),
  };
}

function sizeOf({ width, height }: { readonly width: number; readonly height: number }) {
  return { width, height };
}

/** An edge between the direct children of a state that contain its ends. None, if it belongs to another state. */
function lifted(edge: SketchEdge, within: SketchNode, parents: ReadonlyMap<string, SketchNode>): readonly SketchEdge[] {
  const from = childOf(edge.from, within, parents) ?? (edge.from === within.id ? within.id : undefined);
  const to = childOf(edge.to, within, parents) ?? (edge.to === within.id ? within.id : undefined);
  if (from === undefined || to === undefined) return [];
  const isLoop = edge.from === edge.to;
  return (isLoop && from !== within.id && from === edge.from) || (!isLoop && from !== to)
    ? [{ ...edge, from, to }]
    : [];
}

function childOf(id: string, within: SketchNode, parents: ReadonlyMap<string, SketchNode>): string | undefined {
  for (let at = id, parent = parents.get(at); parent !== undefined; at = parent.id, parent = parents.get(at))
    if (parent === within) return at;
  return undefined;
}

function runDagre(
  boxes: readonly { readonly id: string; readonly width: number; readonly height: number }[],
  edges: readonly SketchEdge[],
  direction: Direction,
): Inside {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction === 'right' ? 'LR' : 'TB', nodesep: 30, ranksep: 30, edgesep: 14 });
  // The path of the root is empty, which dagre does not accept as a name.
  for (const { id, width, height } of boxes) graph.setNode(`n${id}`, { width, height });
  const known = new Set(boxes.map(({ id }) => id));
  // An edge that ends at the enclosing state gets its label as a box of its own; a self-transition goes there and back.
  const labels = new Set<string>();
  const loops = new Set<string>();
  for (const { id, from, to, label = { width: 1, height: 1 } } of edges) {
    const stub = `label ${id}`;
    const ends = [known.has(from) ? `n${from}` : stub, known.has(to) && to !== from ? `n${to}` : stub] as const;
    if (from === to) loops.add(id);
    if (ends.includes(stub)) {
      labels.add(id);
      graph.setNode(stub, { ...label });
      graph.setEdge(ends[0], ends[1], { width: 0, height: 0 }, `e${id}`);
    } else graph.setEdge(ends[0], ends[1], { ...label, labelpos: 'c' }, `e${id}`);
  }
  layout(graph);
  const cornered = ({ x = 0, y = 0, width = 0, height = 0 }: Partial<Rect>): Rect => ({
    x: x - width / 2,
    y: y - height / 2,
    width,
    height,
  });
  const { width = 0, height = 0 } = graph.graph();
  return {
    width,
    height,
    boxes: new Map(boxes.map(({ id }) => [id, cornered(graph.node(`n${id}`))])),
    edges: graph.edges().map((key): PlacedEdge => {
      const edge = graph.edge(key);
      const id = (key.name ?? '').slice(1);
      const there: readonly Point[] = (edge.points ?? []).map(({ x, y }: Point) => ({ x, y }));
      const points = loops.has(id) ? [...there, ...backBeside(there, direction)] : there;
      const label = labels.has(id) ? graph.node(`label ${id}`) : edge;
      return { id, points, label: cornered(label) };
    }),
  };
}

/** The same path back, slightly offset. */
function backBeside(points: readonly Point[], direction: Direction): readonly Point[] {
  const [by, down] = direction === 'right' ? [0, 10] : [10, 0];
  return points.map(({ x, y }) => ({ x: x + by, y: y + down })).reverse();
}

function moved({ id, points, label }: PlacedEdge, by: Point): PlacedEdge {
  return {
    id,
    points: points.map(({ x, y }) => ({ x: x + by.x, y: y + by.y })),
    ...(label === undefined ? {} : { label: { ...label, x: label.x + by.x, y: label.y + by.y } }),
  };
}

/** Extends a line that ends at an enclosing box to the state itself. */
function reachIn(edge: PlacedEdge, edges: readonly SketchEdge[], nodes: readonly PlacedNode[]): PlacedEdge {
  const ends = edges.find(({ id }) => id === edge.id);
  const first = edge.points[0];
  const last = edge.points.at(-1);
  if (ends === undefined || first === undefined || last === undefined) return edge;
  const start = nearest(
    nodes.find(({ id }) => id === ends.from),
    first,
  );
  const end = nearest(
    nodes.find(({ id }) => id === ends.to),
    last,
  );
  return {
    ...edge,
    points: [...(start === undefined ? [] : [start]), ...edge.points, ...(end === undefined ? [] : [end])],
  };
}

/** The point of a box that is nearest to an outside point; undefined for a point in it or on its edge. */
function nearest(box: Rect | undefined, { x, y }: Point): Point | undefined {
  if (box === undefined) return undefined;
  const near = {
    x: Math.min(Math.max(x, box.x), box.x + box.width),
    y: Math.min(Math.max(y, box.y), box.y + box.height),
  };
  return Math.hypot(near.x - x, near.y - y) < 2 ? undefined : near;
}
