/** The nodes and cells of a cluster, as one node sees them. */
import type { Peer } from '../../core/store/membership.ts';

/** The cluster as one node sees it. */
export interface ClusterReport {
  /** The id of this node; undefined while it has no seat. */
  readonly node: string | undefined;
  /** The state of this node, such as `owning`. */
  readonly state: string;
  /** Number of cells that this node serves. */
  readonly cells: number;
  /** Number of cells that this node takes up or lets go of. */
  readonly moving: number;
  /** Number of cells without a living owner. */
  readonly free: number;
  /** All nodes, this one first. */
  readonly nodes: readonly (Peer & { readonly cells: number })[];
}
