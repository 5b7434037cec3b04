/** A statechart with the size of each of its parts: what a layout needs to know of it, and no more. */
import type { ChartEdge, ChartNode } from '../../../../src/inspector/frames.ts';
import { dotOf } from './placed.ts';

/** The width of a text in pixels. The page measures; tests count characters. */
export type Measure = (text: string, style: TextStyle) => number;
/** `name`: a state's; `row`: a line of text in a state; `label`: an edge's. */
export type TextStyle = 'name' | 'row' | 'label';

export interface SketchNode {
  readonly id: string;
  readonly kind: 'state' | 'dot';
  readonly type: ChartNode['type'];
  /** Of a state with states in it: the least that its name and rows need. */
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly SketchNode[];
}

/** One line between two states: all transitions from the one to the other share it, and stand below each other in its label. */
export interface SketchEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly label?: { readonly width: number; readonly height: number };
}

export interface Sketch {
  readonly root: SketchNode;
  readonly edges: readonly SketchEdge[];
}

/** A line in a state's box: what it does while it lasts, or a transition that does not leave it. */
export interface NodeRow {
  readonly kind: 'invoke' | 'entry' | 'exit' | 'stays';
  readonly text: string;
  readonly edge?: ChartEdge;
}

/** A line between two states, with the transitions that share it. */
export interface EdgeGroup {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** Empty for that of a dot. */
  readonly edges: readonly ChartEdge[];
}

export const NAME_HEIGHT = 34;
export const ROW_HEIGHT = 18;
/** Below the last row. */
export const FOOT = 9;
export const SIDE = 14;
export const LABEL_ROW = 18;
const LABEL_SIDE = 6;
const DOT = 10;
const SMALL = 26;
const LEAST_WIDTH = 84;
/** Longest text on one line; what is cut shows as `…`, and in full where it is pointed at. */
const MAX_TEXT = 36;

export function clip(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1)}…`;
}

/** Whether the whole machine needs no frame: nothing is said of it but what is in it. */
export function isPlain(chart: ChartNode): boolean {
  return chart.type === 'compound' && chart.edges.length === 0 && rowsOf(chart).length === 0;
}

/** The height of a state's name and rows. */
export function headOf(rows: number): number {
  return NAME_HEIGHT + (rows === 0 ? 0 : rows * ROW_HEIGHT + FOOT);
}

/** The lines of a state's box, from the upper to the lower. */
export function rowsOf(node: ChartNode): readonly NodeRow[] {
  const { entry = [], exit = [] } = node;
  return [
    ...entry.map((name): NodeRow => ({ kind: 'entry', text: clip(`entry / ${name}`) })),
    ...node.invokes.map((name): NodeRow => ({ kind: 'invoke', text: clip(name) })),
    ...node.edges
      .filter(({ targets }) => targets.length === 0)
      .map((edge): NodeRow => ({ kind: 'stays', text: clip(labelText(edge)), edge })),
    ...exit.map((name): NodeRow => ({ kind: 'exit', text: clip(`exit / ${name}`) })),
  ];
}

/** A transition in words: its event, its guard in brackets, and what it does. */
export function labelText({ label, guard, actions = [] }: ChartEdge): string {
  const asks = guard === undefined ? '' : ` [${guard === '' ? 'if' : guard}]`;
  return `${label}${asks}${actions.length === 0 ? '' : ` / ${actions.join(', ')}`}`;
}

/** Every line of the picture: a transition to several states has one to each of them. */
export function groupsOf(chart: ChartNode): readonly EdgeGroup[] {
  const groups = new Map<string, EdgeGroup & { readonly edges: ChartEdge[] }>();
  const known = new Set<string>();
  walk(chart, ({ path }) => known.add(path));
  walk(chart, (node) => {
    const first = node.type === 'compound' ? node.nodes.find(({ initial }) => initial) : undefined;
    if (first !== undefined)
      groups.set(dotOf(node.path), { id: dotOf(node.path), from: dotOf(node.path), to: first.path, edges: [] });
    for (const edge of node.edges) {
      for (const target of new Set(edge.targets)) {
        if (!known.has(target)) continue;
        const id = `${node.path}\t${target}`;
        const group = groups.get(id);
        if (group === undefined) groups.set(id, { id, from: node.path, to: target, edges: [edge] });
        else group.edges.push(edge);
      }
    }
  });
  return [...groups.values()];
}

export function walk(node: ChartNode, visit: (node: ChartNode) => void): void {
  visit(node);
  for (const child of node.nodes) walk(child, visit);
}

/** Measures a chart. The same chart and fonts give the same sketch. */
export function sketch(chart: ChartNode, measure: Measure): Sketch {
  const nodeOf = (node: ChartNode): SketchNode => {
    const { path: id, type } = node;
    if (type === 'history') return { id, kind: 'state', type, width: SMALL, height: SMALL, nodes: [] };
    const rows = rowsOf(node);
    const texts = rows.map(({ text }) => measure(text, 'row') + 16);
    const plain = node === chart && isPlain(chart);
    const widest = Math.max(LEAST_WIDTH, measure(clip(node.key), 'name') + 10, ...texts) + 2 * SIDE;
    // Boxes that are nearly as wide as each other are as wide as each other.
    const width = plain ? 0 : Math.ceil(widest / 12) * 12;
    const height = plain ? 0 : headOf(rows.length);
    const dot = type === 'compound' && node.nodes.some(({ initial }) => initial);
    return {
      id,
      kind: 'state',
      type,
      width,
      height,
      nodes: [...(dot ? [dotNode(id)] : []), ...node.nodes.map(nodeOf)],
    };
  };
  return {
    root: nodeOf(chart),
    edges: groupsOf(chart).map(({ id, from, to, edges }) => {
      if (edges.length === 0) return { id, from, to };
      const widest = Math.max(...edges.map((edge) => measure(clip(labelText(edge)), 'label')));
      return {
        id,
        from,
        to,
        label: { width: Math.ceil(widest + 2 * LABEL_SIDE), height: edges.length * LABEL_ROW + 2 },
      };
    }),
  };
}

function dotNode(path: string): SketchNode {
  return { id: dotOf(path), kind: 'dot', type: 'atomic', width: DOT, height: DOT, nodes: [] };
}
