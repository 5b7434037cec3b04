/** Decides which node of a cluster serves a request. Types only; a server without other nodes has none. */
import type { RequestView } from './request-view.ts';

export interface RequestPlacement {
  /** The cell whose owner opens the sessions of a principal; undefined: any node. */
  cellOfSession(principal: string): number | undefined;
  /** The cell whose owner serves a request; undefined: any node. */
  cellOf(request: RequestView): number | undefined;
  /** True if this node owns the cell. */
  owns(cell: number): boolean;
  /** True if a request may be sent to the next owner after an owner has ended without a response. */
  mayRepeat(request: RequestView): boolean;
}
