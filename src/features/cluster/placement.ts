/** The place of each cell: this node, another node, or none. */
import type { Peer } from '../../core/store/membership.ts';

export type Place =
  | { readonly at: 'here' }
  | { readonly at: 'peer'; readonly peer: Peer }
  /** The cell has no owner, or its owner is no longer a node. */
  | { readonly at: 'nobody' };

/** The cells of a cluster and their places. A server without the option `cluster` has none: everything is here. */
export interface Placement {
  /**
   * Returns the cell of a principal: HMAC-SHA-256(cluster secret, principal) mod 1,024. Anonymous callers get a random
   * cell that this node owns.
   */
  cellFor(principal: string): number;
  /**
   * Returns the place of a cell by the last read of the table: a hint, except for `here`. A cell that moves away from
   * this node has no place until it has moved: `settle` waits for that.
   */
  placeOf(cell: number): Place;
  /**
   * Counts a request that this node serves because it owns the cell: the node lets go of the cell after the request has
   * ended.
   *
   * @returns a function to call once, when the request has ended
   */
  enter(cell: number): () => void;
  /**
   * Claims a cell without an owner, or whose owner is dead. Resolves with its place then.
   *
   * @param deadlineMs milliseconds to wait at most
   * @throws {StoreError} `busy` at its deadline
   */
  settle(cell: number, deadlineMs: number): Promise<Place>;
}
