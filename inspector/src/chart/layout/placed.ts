/** Where the parts of a statechart's picture are: plain data, the same from a worker, in a cache and in an exported page. */

/** Which way the transitions mostly lead. */
export type Direction = 'right' | 'down';
export const DIRECTIONS: readonly Direction[] = ['right', 'down'];

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The room for a picture. */
export interface Pane {
  readonly width: number;
  readonly height: number;
}

export interface Rect extends Point {
  readonly width: number;
  readonly height: number;
}

/** A state, or the dot at which its parent begins. */
export interface PlacedNode extends Rect {
  /** The state's path, or {@link dotOf} its parent's. */
  readonly id: string;
}

export interface PlacedEdge {
  readonly id: string;
  /** From its source to its target, each line level or upright. Empty: it is told by its label only. */
  readonly points: readonly Point[];
  /** Absent for that of a dot. */
  readonly label?: Rect;
}

/** The places are from the picture's upper left corner, not from those around them. */
export interface Placed {
  readonly engine: 'elk' | 'dagre' | 'grid';
  readonly direction: Direction;
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

/** The id of the dot that shows where a state begins. No path has a line break in it. */
export function dotOf(path: string): string {
  return `${path}\n`;
}

export function isDot(id: string): boolean {
  return id.endsWith('\n');
}
