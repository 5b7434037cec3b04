/** The layout of last resort: boxes in rows, labels on straight lines. It always works, and only lines overlap. */
import type { Direction, PlacedChart, PlacedEdge, PlacedNode, Rect } from '../../../../src/features/charts/placed.ts';
import type { Sketch, SketchNode } from '../../../../src/features/charts/sketch.ts';

const GAP = 28;
const PAD = 18;

export function gridLayout(sketch: Sketch, direction: Direction): PlacedChart {
  const nodes: PlacedNode[] = [];
  const sizes = new Map<SketchNode, { readonly width: number; readonly height: number }>();
  const sizeOf = (node: SketchNode): { readonly width: number; readonly height: number } => {
    const known = sizes.get(node);
    if (known !== undefined) return known;
    const inner = cells(node.nodes, sizeOf);
    const size =
      node.nodes.length === 0
        ? { width: node.width, height: node.height }
        : { width: Math.max(node.width, inner.width + 2 * PAD), height: node.height + inner.height + 2 * PAD };
    sizes.set(node, size);
    return size;
  };
  const place = (node: SketchNode, x: number, y: number): void => {
    nodes.push({ id: node.id, x, y, ...sizeOf(node) });
    cells(node.nodes, sizeOf).at.forEach((cell, index) => {
      const child = node.nodes[index];
      if (child !== undefined) place(child, x + PAD + cell.x, y + node.height + PAD + cell.y);
    });
  };
  place(sketch.root, 8, 8);
  const whole = sizeOf(sketch.root);
  // Labels are in a column beside the boxes, each with the number of its line; the lines themselves are omitted.
  let below = 8;
  let widest = 0;
  const edges = sketch.edges.map(({ id, label }): PlacedEdge => {
    if (label === undefined) return { id, points: [] };
    const at: Rect = { x: whole.width + GAP, y: below, ...label };
    below += label.height + 4;
    widest = Math.max(widest, label.width);
    return { id, points: [], label: at };
  });
  return {
    engine: 'grid',
    direction,
    width: whole.width + 16 + (widest === 0 ? 0 : widest + GAP),
    height: Math.max(whole.height, below) + 16,
    nodes,
    edges,
  };
}

interface Cells {
  readonly width: number;
  readonly height: number;
  readonly at: readonly { readonly x: number; readonly y: number }[];
}

/** About as many rows as columns. */
function cells(nodes: readonly SketchNode[], sizeOf: (node: SketchNode) => { width: number; height: number }): Cells {
  const columns = Math.ceil(Math.sqrt(nodes.length));
  const at: { x: number; y: number }[] = [];
  let x = 0;
  let y = 0;
  let tallest = 0;
  let width = 0;
  nodes.forEach((node, index) => {
    if (index > 0 && index % columns === 0) {
      y += tallest + GAP;
      x = 0;
      tallest = 0;
    }
    const size = sizeOf(node);
    at.push({ x, y });
    x += size.width + GAP;
    width = Math.max(width, x - GAP);
    tallest = Math.max(tallest, size.height);
  });
  return { width, height: y + tallest, at };
}
