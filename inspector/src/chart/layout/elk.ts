/** Lays out a sketch with ELK's layered algorithm. */
import type { ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js';
import {
  type Direction,
  isDot,
  type PlacedChart,
  type PlacedEdge,
  type PlacedNode,
  type Point,
} from '../../../../src/features/charts/placed.ts';
import type { Sketch, SketchNode } from '../../../../src/features/charts/sketch.ts';
import { costOf } from './cost.ts';
import { settle } from './settle.ts';

/** Sends one graph to ELK. */
export type Elk = (graph: ElkNode) => Promise<ElkNode>;

/**
 * ELK does not pass options down into nested graphs: each compound gets them. The strategies that keep the order of the
 * model all crash elkjs 0.12 in nested graphs.
 */
function optionsFor(direction: Direction): Record<string, string> {
  return {
    'elk.algorithm': 'layered',
    'elk.direction': direction === 'right' ? 'RIGHT' : 'DOWN',
    'elk.edgeRouting': 'ORTHOGONAL',
    'elk.layered.cycleBreaking.strategy': 'DEPTH_FIRST',
    'elk.layered.considerModelOrder.strategy': 'NONE',
    // A third fewer bends than BRANDES_KOEPF, measured on our own machines, at the same speed.
    'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
    'elk.layered.edgeLabels.centerLabelPlacementStrategy': 'SPACE_EFFICIENT_LAYER',
    'elk.spacing.nodeNode': '26',
    'elk.spacing.edgeNode': '16',
    'elk.spacing.edgeEdge': '12',
    'elk.spacing.edgeLabel': '4',
    'elk.spacing.labelNode': '8',
    'elk.spacing.nodeSelfLoop': '14',
    'elk.layered.spacing.nodeNodeBetweenLayers': '26',
    'elk.layered.spacing.edgeNodeBetweenLayers': '16',
    'elk.layered.spacing.edgeEdgeBetweenLayers': '12',
    'elk.spacing.componentComponent': '28',
    'elk.edgeLabels.inline': 'true',
    'elk.contentAlignment': 'H_CENTER V_CENTER',
    'elk.randomSeed': '1',
  };
}

/**
 * The differences between tries. No strategy gives the best picture of every chart, and a try takes some milliseconds.
 * A small chart gets all tries and keeps the most readable one; a large one is laid out once or twice.
 */
const TRIES: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'elk.randomSeed': '3' },
  { 'elk.layered.cycleBreaking.strategy': 'INTERACTIVE' },
  { 'elk.layered.nodePlacement.strategy': 'BRANDES_KOEPF', 'elk.randomSeed': '2' },
  {
    'elk.layered.nodePlacement.strategy': 'BRANDES_KOEPF',
    'elk.layered.nodePlacement.bk.fixedAlignment': 'BALANCED',
  },
];

/** With 150 lines, the placement that is best for few lines takes three seconds, and this one less than one. */
const QUICK: Readonly<Record<string, string>> = {
  'elk.layered.nodePlacement.strategy': 'BRANDES_KOEPF',
  'elk.layered.thoroughness': '3',
  'elk.layered.crossingMinimization.greedySwitch.type': 'OFF',
};

function triesFor({ edges }: Sketch): typeof TRIES {
  if (edges.length <= 28) return TRIES;
  return edges.length <= 60 ? TRIES.slice(0, 2) : [QUICK];
}

/** Lays out a sketch with ELK, once. After a crash it makes the next try; if all crash, it throws the last error. */
export async function layoutWithElk(sketch: Sketch, direction: Direction, elk: Elk): Promise<PlacedChart> {
  let failure: unknown;
  for (const options of triesFor(sketch)) {
    try {
      return settle(await once(sketch, direction, elk, options), sketch);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Makes the other tries and returns the best picture. */
export async function improveWithElk(sketch: Sketch, placed: PlacedChart, elk: Elk): Promise<PlacedChart> {
  let best = placed;
  let least = costOf(placed);
  if (placed.engine !== 'elk') return placed;
  for (const options of triesFor(sketch).slice(1)) {
    try {
      const other = settle(await once(sketch, placed.direction, elk, options), sketch);
      const cost = costOf(other);
      if (cost >= least) continue;
      best = other;
      least = cost;
    } catch {
      // One picture exists already.
    }
  }
  return best;
}

async function once(
  sketch: Sketch,
  direction: Direction,
  elk: Elk,
  differing: Readonly<Record<string, string>>,
): Promise<PlacedChart> {
  const options = { ...optionsFor(direction), ...differing };
  const graph: ElkNode = {
    id: 'graph',
    layoutOptions: { ...options, 'elk.hierarchyHandling': 'INCLUDE_CHILDREN', 'elk.padding': box(8, 8, 8, 8) },
    children: [nodeOf(sketch.root, options, direction, degreesOf(sketch))],
    edges: sketch.edges.map(({ id, from, to, label }) => ({
      id: `e${id}`,
      sources: [`n${from}`],
      targets: [`n${to}`],
      ...(label === undefined
        ? { layoutOptions: { 'elk.layered.priority.straightness': '10', 'elk.layered.priority.direction': '10' } }
        : {
            labels: [
              {
                id: `l${id}`,
                text: '.',
                ...label,
                layoutOptions: { 'elk.edgeLabels.placement': 'CENTER', 'elk.edgeLabels.inline': 'true' },
              },
            ],
          }),
    })),
  };
  return read(await elk(graph), direction);
}

/** The number of lines at each state. */
function degreesOf({ edges }: Sketch): ReadonlyMap<string, number> {
  const degrees = new Map<string, number>();
  for (const { from, to } of edges) for (const id of [from, to]) degrees.set(id, (degrees.get(id) ?? 0) + 1);
  return degrees;
}

/** Minimum distance of the lines at one side of a state. */
const LINE_GAP = 9;

function nodeOf(
  node: SketchNode,
  options: Record<string, string>,
  direction: Direction,
  degrees: ReadonlyMap<string, number>,
): ElkNode {
  const { id, kind, nodes } = node;
  const room = LINE_GAP * (degrees.get(id) ?? 0);
  const width = direction === 'down' && node.type !== 'history' ? Math.max(node.width, room) : node.width;
  const height =
    direction === 'right' && node.type !== 'history' && nodes.length === 0 ? Math.max(node.height, room) : node.height;
  if (kind === 'dot')
    return { id: `n${id}`, width, height, layoutOptions: { 'elk.layered.layering.layerConstraint': 'FIRST' } };
  if (nodes.length === 0) return { id: `n${id}`, width, height };
  return {
    id: `n${id}`,
    layoutOptions: {
      ...options,
      'elk.padding': height === 0 ? box(8, 8, 8, 8) : box(height + 8, 18, 18, 18),
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${width}, ${height + 36})`,
    },
    children: nodes.map((child) => nodeOf(child, options, direction, degrees)),
  };
}

function box(top: number, right: number, bottom: number, left: number): string {
  return `[top=${top},left=${left},bottom=${bottom},right=${right}]`;
}

/** ELK positions nodes relative to the enclosing corner, and edges relative to their container. */
function read(graph: ElkNode, direction: Direction): PlacedChart {
  const nodes: PlacedNode[] = [];
  const corners = new Map<string, Point>([['graph', { x: 0, y: 0 }]]);
  const edges: ElkExtendedEdge[] = [...(graph.edges ?? [])];
  const visit = (node: ElkNode, around: Point): void => {
    const at = { x: around.x + (node.x ?? 0), y: around.y + (node.y ?? 0) };
    corners.set(node.id, at);
    nodes.push({ id: node.id.slice(1), ...at, width: node.width ?? 0, height: node.height ?? 0 });
    edges.push(...(node.edges ?? []));
    for (const child of node.children ?? []) visit(child, at);
  };
  for (const child of graph.children ?? []) visit(child, { x: 0, y: 0 });
  return {
    engine: 'elk',
    direction,
    width: graph.width ?? 0,
    height: graph.height ?? 0,
    nodes,
    edges: edges.map((edge) => readEdge(edge, corners)),
  };
}

function readEdge(edge: ElkExtendedEdge, corners: ReadonlyMap<string, Point>): PlacedEdge {
  const corner = corners.get(edge.container ?? 'graph') ?? { x: 0, y: 0 };
  const moved = ({ x, y }: Point): Point => ({ x: corner.x + x, y: corner.y + y });
  const points = (edge.sections ?? []).flatMap(({ startPoint, bendPoints = [], endPoint }) =>
    [startPoint, ...bendPoints, endPoint].map(moved),
  );
  const [label] = edge.labels ?? [];
  const id = edge.id.slice(1);
  if (label === undefined || isDot(id)) return { id, points };
  const { x = 0, y = 0, width = 0, height = 0 } = label;
  return { id, points, label: { ...moved({ x, y }), width, height } };
}
