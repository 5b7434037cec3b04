/** The positions of everything in a picture of a statechart: the page and the command draw the same. */
import type { ChartNode } from '../../core/kernel/charts/chart-node.ts';
import { contains, middleOf } from './line-path.ts';
import { isDot, type PlacedChart, type PlacedEdge, type PlacedNode } from './placed.ts';
import { type EdgeGroup, groupsOf, isFrameless, type NodeRow, walk } from './sketch.ts';

/** A dashed line between two regions of a parallel state. */
interface Separator {
  readonly x: number;
  readonly y: number;
  readonly toX: number;
  readonly toY: number;
}

/** Constant for a chart and its layout. */
interface Drawing {
  readonly states: readonly { readonly node: ChartNode; readonly box: PlacedNode; readonly region: boolean }[];
  readonly dots: readonly PlacedNode[];
  readonly edges: readonly { readonly group: EdgeGroup; readonly edge: PlacedEdge; readonly within: boolean }[];
  readonly separators: readonly Separator[];
}

export function drawingOf(chart: ChartNode, placed: PlacedChart): Drawing {
  const boxes = new Map(placed.nodes.map((node) => [node.id, node]));
  const lines = new Map(placed.edges.map((edge) => [edge.id, edge]));
  const states: Drawing['states'][number][] = [];
  const separators: Separator[] = [];
  const regions = new Set<string>();
  walk(chart, (node) => {
    const box = boxes.get(node.path);
    if (box === undefined) return;
    if (node.type === 'parallel') {
      const inner = node.nodes.flatMap(({ path }) => boxes.get(path) ?? []);
      const between = separatorsOf(inner);
      if (between !== undefined) {
        separators.push(...between);
        for (const { path } of node.nodes) regions.add(path);
      }
    }
    states.push({ node, box, region: regions.has(node.path) });
  });
  const plain = isFrameless(chart);
  const frames = states.filter(({ node }) => node.nodes.length > 0 && !(plain && node === chart)).map(({ box }) => box);
  return {
    states,
    dots: placed.nodes.filter(({ id }) => isDot(id)),
    edges: groupsOf(chart).flatMap((group) => {
      const edge = lines.get(group.id);
      if (edge === undefined) return [];
      const { label } = edge;
      return [{ group, edge, within: label !== undefined && frames.some((frame) => contains(frame, middleOf(label))) }];
    }),
    separators,
  };
}

/** Undefined: the regions do not fill the state in columns or rows, and keep their frames. */
function separatorsOf(regions: readonly PlacedNode[]): readonly Separator[] | undefined {
  const across = [...regions].sort((a, b) => a.x - b.x);
  const down = [...regions].sort((a, b) => a.y - b.y);
  if (touch(across, ({ x, width }) => [x, x + width]))
    return across.slice(1).map(({ x, y, height }) => ({ x: x + 0.5, y, toX: x + 0.5, toY: y + height }));
  if (touch(down, ({ y, height }) => [y, y + height]))
    return down.slice(1).map(({ x, y, width }) => ({ x, y: y + 0.5, toX: x + width, toY: y + 0.5 }));
  return undefined;
}

function touch(regions: readonly PlacedNode[], ends: (region: PlacedNode) => readonly [number, number]): boolean {
  return regions.every((region, index) => {
    const before = regions[index - 1];
    return before === undefined || ends(before)[1] === ends(region)[0];
  });
}

/** Signs of ten pixels each: invoked actors, entry and exit actions, and internal transitions. */
export const SIGNS: Readonly<Record<NodeRow['kind'], string>> = {
  invoke: 'M2 1.5L8.5 5L2 8.5Z',
  entry: 'M1 5H7M4.5 2L7.5 5L4.5 8M9.5 1V9',
  exit: 'M0.5 1V9M3 5H9M6.5 2L9.5 5L6.5 8',
  stays: 'M8.5 3.5A4 4 0 1 0 9 6M9 1V4H6',
};
