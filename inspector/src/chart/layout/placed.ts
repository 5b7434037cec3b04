/** The positions of a statechart's picture: plain data, equal in a worker, a cache and an exported page. */

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
export interface Placed {
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
