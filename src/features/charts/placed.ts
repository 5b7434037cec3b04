/** The positions of a statechart's picture: plain data, equal in a worker, a cache and an exported page. */

import { isObject } from '../../core/protocol/json.ts';

/** The main direction of the transitions. */
export type Direction = 'right' | 'down';
export const DIRECTIONS: readonly Direction[] = ['right', 'down'];

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The size of the pane for a picture. */
export interface Pane {
  readonly width: number;
  readonly height: number;
}

export interface Rect extends Point {
  readonly width: number;
  readonly height: number;
}

/** A state, or the dot of its parent's initial transition. */
export interface PlacedNode extends Rect {
  /** The state's path, or {@link dotOf} its parent's. */
  readonly id: string;
}

export interface PlacedEdge {
  readonly id: string;
  /** From source to target, each segment horizontal or vertical. Empty: only the label is shown. */
  readonly points: readonly Point[];
  /** Absent for the line of a dot. */
  readonly label?: Rect;
}

/** Positions are relative to the upper left corner of the picture. */
export interface PlacedChart {
  readonly engine: 'elk' | 'dagre' | 'grid';
  readonly direction: Direction;
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

/** The id of the dot of an initial transition. No path contains a line break. */
export function dotOf(path: string): string {
  return `${path}\n`;
}

export function isDot(id: string): boolean {
  return id.endsWith('\n');
}

/** The scale of a picture in a pane; at most its original size. */
function scaleIn(
  { width, height }: Pick<PlacedChart, 'width' | 'height'>,
  pane: Pick<Rect, 'width' | 'height'>,
): number {
  return Math.min(1, pane.width / width, pane.height / height);
}

/** The picture that fills a pane better. */
export function betterIn(
  pane: Pick<Rect, 'width' | 'height'>,
  [first, ...others]: readonly PlacedChart[],
): PlacedChart | undefined {
  let best = first;
  for (const other of others) {
    if (best === undefined || scaleIn(other, pane) > scaleIn(best, pane) * 1.04) best = other;
  }
  return best;
}

/** True for a layout that another thread or a file contains. */
export function isPlaced(data: unknown): data is PlacedChart {
  return (
    isObject(data) &&
    (data.engine === 'elk' || data.engine === 'dagre' || data.engine === 'grid') &&
    (data.direction === 'right' || data.direction === 'down') &&
    [data.width, data.height].every(Number.isFinite) &&
    Array.isArray(data.nodes) &&
    data.nodes.every((node) => isObject(node) && typeof node.id === 'string' && isRect(node)) &&
    Array.isArray(data.edges) &&
    data.edges.every(isEdge)
  );
}

function isEdge(data: unknown): boolean {
  return (
    isObject(data) &&
    typeof data.id === 'string' &&
    Array.isArray(data.points) &&
    data.points.every((point) => isObject(point) && [point.x, point.y].every(Number.isFinite)) &&
    (data.label === undefined || (isObject(data.label) && isRect(data.label)))
  );
}

function isRect({ x, y, width, height }: { readonly [key: string]: unknown }): boolean {
  return [x, y, width, height].every(Number.isFinite);
}
