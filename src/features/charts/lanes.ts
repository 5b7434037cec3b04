/** Lays out the picture of a statechart: states one below the other, and a lane beside them for each arrow. */
import type { ChartEdge, ChartNode } from '../../core/kernel/charts/chart-node.ts';

/** Height of a line of text. */
export const ROW = 20;
const PAD = 12;
/** Width of a character of the picture's font. */
const CHAR = 7.9;
const LANE = 9;

/** Maximum length of a line of text; `…` marks a cut. */
const MAX_TEXT = 64;
/** Maximum number of boxes and lines of text. */
const MAX_PARTS = 1_000;
/** Maximum number of arrows side by side; further transitions have only their line of text. */
const MAX_LANES = 40;

export interface Box {
  readonly state: ChartNode;
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly rows: readonly ChartRow[];
}

export interface ChartRow {
  readonly text: string;
  readonly y: number;
  /** The line describes what the state does, and has no arrow. */
  readonly does: boolean;
}

/** An arrow: from the line of a transition to the right, along a lane, and back to its target. */
export interface Edge {
  /** The path of the source state. */
  readonly from: string;
  readonly x: number;
  readonly y: number;
  readonly lane: number;
  readonly toX: number;
  readonly toY: number;
}

interface Arranged {
  readonly boxes: readonly Box[];
  readonly edges: readonly Edge[];
  readonly width: number;
  readonly height: number;
  /** Number of boxes and lines that are omitted because there are too many. */
  readonly left: number;
}

interface Leaving {
  readonly from: string;
  readonly to: string;
  readonly y: number;
}

/**
 * Boxes contain their lines of text, then their child states. To the right of a line there are only the edges of the
 * enclosing boxes.
 */
export function arrange(chart: ChartNode): Arranged {
  const boxes: Box[] = [];
  const leaving: Leaving[] = [];
  let parts = 0;
  const fits = (): boolean => {
    if (parts >= MAX_PARTS) return false;
    parts += 1;
    return true;
  };
  const place = (state: ChartNode, x: number, y: number): { readonly width: number; readonly height: number } => {
    const name = clip(nameOf(state));
    const rows: ChartRow[] = [];
    let below = y + ROW + 4;
    let width = 24 + widthOf(name) + PAD;
    const line = (text: string, does: boolean): void => {
      rows.push({ text, y: below, does });
      width = Math.max(width, 24 + widthOf(text) + PAD);
      below += ROW;
    };
    // Place a box before its children, so that they are drawn over it.
    const at = boxes.push({ state, name, x, y, width: 0, height: 0, rows }) - 1;
    for (const invoked of state.invokes) if (fits()) line(clip(`does ${invoked}`), true);
    for (const transition of state.edges) {
      if (!fits()) continue;
      const [to] = transition.targets;
      if (to !== undefined) leaving.push({ from: state.path, to, y: below + ROW / 2 });
      line(clip(textOf(transition)), false);
    }
    for (const child of state.nodes) {
      if (!fits()) continue;
      const inner = place(child, x + PAD, below + PAD / 2);
      width = Math.max(width, inner.width + 2 * PAD);
      below += inner.height + PAD;
    }
    const height = below - y + (state.nodes.length > 0 ? PAD / 2 : 4);
    boxes[at] = { state, name, x, y, width, height, rows };
    return { width, height };
  };
  const whole = place(chart, PAD, PAD);
  const left = partsOf(chart) - parts;
  const { edges, lanes } = route(leaving, boxes, PAD + whole.width + LANE);
  return {
    boxes,
    edges,
    width: Math.ceil(whole.width + 2 * PAD + (lanes + 1) * LANE),
    height: whole.height + 2 * PAD + (left > 0 ? ROW : 0),
    left,
  };
}

/** Number of boxes and lines in a box. */
function partsOf({ invokes, edges, nodes }: ChartNode): number {
  return nodes.reduce((sum, node) => sum + 1 + partsOf(node), invokes.length + edges.length);
}

/** Assigns a lane to each arrow, without overlaps: the shortest arrows get the nearest lanes. */
function route(leaving: readonly Leaving[], boxes: readonly Box[], from: number) {
  const byPath = new Map(boxes.map((box) => [box.state.path, box]));
  const lanes: (readonly [number, number])[][] = [];
  const edges: Edge[] = [];
  const spans = leaving
    .flatMap((edge) => {
      const source = byPath.get(edge.from);
      const target = byPath.get(edge.to);
      return source && target ? [{ edge, source, target, toY: target.y + ROW / 2 + 3 }] : [];
    })
    .sort((a, b) => Math.abs(a.edge.y - a.toY) - Math.abs(b.edge.y - b.toY));
  for (const { edge, source, target, toY } of spans) {
    const span = [Math.min(edge.y, toY) - 3, Math.max(edge.y, toY) + 3] as const;
    let lane = lanes.findIndex((taken) => taken.every(([top, bottom]) => bottom < span[0] || top > span[1]));
    if (lane < 0) lane = lanes.length;
    if (lane >= MAX_LANES) continue;
    lanes[lane] ??= [];
    lanes[lane]?.push(span);
    edges.push({
      from: edge.from,
      x: source.x + source.width,
      y: edge.y,
      lane: from + lane * LANE,
      toX: target.x + target.width,
      toY,
    });
  }
  return { edges, lanes: lanes.length };
}

function nameOf({ key, type }: ChartNode): string {
  return type === 'history' ? `${key} (history)` : type === 'parallel' ? `${key} (parallel)` : key;
}

function textOf({ label, guard, targets }: ChartEdge): string {
  const condition = guard === undefined ? '' : ` [${guard === '' ? 'if' : guard}]`;
  return `${label}${condition}${targets.length === 0 ? '' : ` → ${targets.join(', ')}`}`;
}

function clip(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1)}…` : text;
}

/** Characters outside Latin and similar scripts take the space of two. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += (character.codePointAt(0) ?? 0) > 0x2e7f ? 2 * CHAR : CHAR;
  return Math.ceil(width);
}
