/** The membership port: the nodes that share a store, and the cells that each of them owns. The store decides both. */

/** Another node, as the last read of the store shows it. */
export interface Peer {
  readonly node: string;
  /** The host and port of its link. */
  readonly address: string;
  /** The version of its server. */
  readonly version: string;
  /** The node is stopping: it claims no cells, and lets go of its own. */
  readonly leaving: boolean;
}

export interface Nodes {
  /**
   * Joins under an id that no node had before, with no cells.
   *
   * @throws {StoreError} if the store does not respond in time
   */
  join(self: { readonly address: string; readonly version: string }, hear: MemberEvents): Promise<Member>;
}

export interface MemberEvents {
  /** The nodes or the owners of cells have changed. */
  changed(): void;
  /** The node is fenced or must assume so: it owns nothing any more and may commit nothing. Called once. */
  lost(why: string): void;
}

/** The seat of this node in the store. */
export interface Member {
  readonly id: string;
  /** Milliseconds since 1970 by the database, steady between two beats. */
  date(): number;
  /** False while the store has not answered for as long as a lease: this node may be fenced, and cannot know it. */
  connected(): boolean;
  /** All nodes that are not fenced, without this one. */
  peers(): readonly Peer[];
  /** The owner in the last read of the table: a hint. Undefined for a cell without an owner. */
  ownerOf(cell: number): string | undefined;
  /**
   * Takes these cells if their owner is still the observed one: undefined for none, or a fenced node.
   *
   * @returns the cells that this node has won
   */
  claim(cells: readonly number[], observed: string | undefined): Promise<readonly number[]>;
  /** Gives cells of this node to another node, or to none. */
  release(cells: readonly number[], to: string | undefined): Promise<void>;
  /** Asks the database whether a node is dead, and fences it if so. @returns true if it is fenced now */
  fence(node: string): Promise<boolean>;
  /** Reads nodes and owners now, instead of at the next beat. */
  refresh(): Promise<void>;
  /** Announces that this node is leaving: its peers see it as `leaving`, and claim what it releases. It keeps its cells. */
  retire(): Promise<void>;
  /** Gives up the seat. The cells of this node become free. */
  leave(): Promise<void>;
}
