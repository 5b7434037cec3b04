/** Chooses the layout engine: the first one that returns a complete picture. */

import type { ChartNode } from '../../../../src/inspector/frames.ts';
import { gridLayout } from './grid.ts';
import type { Direction, Placed, Rect } from './placed.ts';
import { settle } from './settle.ts';
import { type Measure, type Sketch, type SketchNode, sketch } from './sketch.ts';

/** A layout engine. It may throw, and it may return nonsense. */
export type Engine = (sketch: Sketch, direction: Direction) => Promise<Placed>;

/** Lays out a chart with the first engine that does not fail, or otherwise in a plain grid, which cannot fail. */
export function layout(
  chart: ChartNode,
  measure: Measure,
  direction: Direction,
  engines: readonly Engine[],
): Promise<Placed> {
  return layoutSketch(sketch(chart, measure), direction, engines);
}

export async function layoutSketch(
  sketched: Sketch,
  direction: Direction,
  engines: readonly Engine[],
): Promise<Placed> {
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

function isWhole({ width, height, nodes, edges }: Placed, { root, edges: wanted }: Sketch): boolean {
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

/** The scale of a picture in a pane; at most its original size. */
export function scaleIn(
  { width, height }: Pick<Placed, 'width' | 'height'>,
  pane: Pick<Rect, 'width' | 'height'>,
): number {
  return Math.min(1, pane.width / width, pane.height / height);
}

/** The picture that fills a pane better. */
export function betterIn(
  pane: Pick<Rect, 'width' | 'height'>,
  [first, ...others]: readonly Placed[],
): Placed | undefined {
  let best = first;
  for (const other of others) {
    if (best === undefined || scaleIn(other, pane) > scaleIn(best, pane) * 1.04) best = other;
  }
  return best;
}
