/** Chooses the layout engine: the first one that returns a complete picture. */

import type { Direction, PlacedChart, Rect } from '../../../../src/features/charts/placed.ts';
import { type Measure, type Sketch, type SketchNode, sketch } from '../../../../src/features/charts/sketch.ts';
import type { ChartNode } from '../../../../src/inspector/frames.ts';
import { gridLayout } from './grid.ts';
import { settle } from './settle.ts';

/** A layout engine. It may throw, and it may return nonsense. */
export type Engine = (sketch: Sketch, direction: Direction) => Promise<PlacedChart>;

/** Lays out a chart with the first engine that does not fail, or otherwise in a plain grid, which cannot fail. */
export function layout(
  chart: ChartNode,
  measure: Measure,
  direction: Direction,
  engines: readonly Engine[],
): Promise<PlacedChart> {
  return layoutSketch(sketch(chart, measure), direction, engines);
}

export async function layoutSketch(
  sketched: Sketch,
  direction: Direction,
  engines: readonly Engine[],
): Promise<PlacedChart> {
  for (const engine of engines) {
    try {
      const placed = await engine(sketched, direction);
      if (isWhole(placed, sketched)) return settle(placed, sketched);
    } catch {
      // Try the next engine: a worse picture is better than none.
    }
  }
  return settle(gridLayout(sketched, direction), sketched);
}

function isWhole({ width, height, nodes, edges }: PlacedChart, { root, edges: wanted }: Sketch): boolean {
  const boxes = new Map(nodes.map((node) => [node.id, node]));
  const isFine = (node: SketchNode): boolean => {
    const box = boxes.get(node.id);
    return box !== undefined && isPlaced(box) && node.nodes.every(isFine);
  };
  const drawn = new Set(edges.map(({ id }) => id));
  return width > 0 && height > 0 && isFine(root) && wanted.every(({ id }) => drawn.has(id));
}

function isPlaced({ x, y, width, height }: Rect): boolean {
  return Number.isFinite(x + y + width + height);
}
