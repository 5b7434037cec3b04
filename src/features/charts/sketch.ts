/** A statechart with the sizes of its parts: the input of a layout. */
import type { ChartEdge, ChartNode } from '../../core/kernel/charts/chart-node.ts';
import { dotOf } from './placed.ts';

/** Returns the width of a text in pixels. The page measures; tests count characters. */
export type Measure = (text: string, style: TextStyle) => number;
/** `name`: of a state; `row`: a line of text in a state; `label`: of an edge. */
export type TextStyle = 'name' | 'row' | 'label';

export interface SketchNode {
  readonly id: string;
  readonly kind: 'state' | 'dot';
  readonly type: ChartNode['type'];
  /** For a compound state: the minimum for its name and rows. */
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly SketchNode[];
}

/** One line between two states: all transitions in that direction share it, and are listed in its label. */
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

/** A line of text in a state's box: an action, an invoked actor, or an internal transition. */
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
  /** Empty for the line of a dot. Those without a text are not in the label (`isLabelled`). */
  readonly edges: readonly ChartEdge[];
}

export const NAME_HEIGHT = 34;
export const ROW_HEIGHT = 18;
/** Below the last row. */
const FOOT = 9;
export const SIDE = 14;
export const LABEL_ROW = 18;
const LABEL_SIDE = 6;
const DOT = 10;
const SMALL = 26;
const LEAST_WIDTH = 84;
/** Maximum length of a line of text. The rest is shown as `…`, and in full under the pointer. */
const MAX_TEXT = 36;

export function clipText(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1)}…`;
}

/** True if the root needs no frame: it has no properties of its own. */
export function isFrameless(chart: ChartNode): boolean {
  return chart.type === 'compound' && chart.edges.length === 0 && rowsOf(chart).length === 0;
}

/** The height of a state's name and rows. */
export function headOf(rows: number): number {
  return NAME_HEIGHT + (rows === 0 ? 0 : rows * ROW_HEIGHT + FOOT);
}

/** The rows of a state's box, from top to bottom. */
export function rowsOf(node: ChartNode): readonly NodeRow[] {
  const { entry = [], exit = [] } = node;
  return [
    ...entry.map((name): NodeRow => ({ kind: 'entry', text: clipText(`entry / ${name}`) })),
    ...node.invokes.map((name): NodeRow => ({ kind: 'invoke', text: clipText(name) })),
    ...node.edges
      .filter(({ targets }) => targets.length === 0)
      .map((edge): NodeRow => ({ kind: 'stays', text: clipText(labelText(edge)), edge })),
    ...exit.map((name): NodeRow => ({ kind: 'exit', text: clipText(`exit / ${name}`) })),
  ];
}

/** A transition as text: its event, its guard in brackets, and its actions. */
export function labelText({ label, guard, actions = [] }: ChartEdge): string {
  const asks = guard === undefined ? '' : ` [${guard === '' ? 'if' : guard}]`;
  return `${label}${asks}${actions.length === 0 ? '' : ` / ${actions.join(', ')}`}`;
}

/** False for a transition whose line has no text. */
export function isLabelled(edge: ChartEdge): boolean {
  return labelText(edge) !== '';
}

/** Every line of the picture: a transition with several targets has one line to each. */
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
    const plain = node === chart && isFrameless(chart);
    const widest = Math.max(LEAST_WIDTH, measure(clipText(node.key), 'name') + 10, ...texts) + 2 * SIDE;
    // Boxes of nearly equal widths get the same width.
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
      const labelled = edges.filter(isLabelled);
      if (labelled.length === 0) return { id, from, to };
      const widest = Math.max(...labelled.map((edge) => measure(clipText(labelText(edge)), 'label')));
      return {
        id,
        from,
        to,
        label: { width: Math.ceil(widest + 2 * LABEL_SIDE), height: labelled.length * LABEL_ROW + 2 },
      };
    }),
  };
}

function dotNode(path: string): SketchNode {
  return { id: dotOf(path), kind: 'dot', type: 'atomic', width: DOT, height: DOT, nodes: [] };
}
