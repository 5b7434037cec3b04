/** The parts of a server that hold stored data in memory, cell by cell. Types only. */

/**
 * Takes up the stored data of cells when this process owns them, and lets go of the cells when another process does. A
 * process that owns the whole store takes everything once.
 */
export interface CellHolder {
  /**
   * Takes up the data of these cells: before any request that needs it.
   *
   * @param cells undefined: everything in the store, also actors without a cell
   * @throws {StoreError}
   */
  take(cells: readonly number[] | undefined): Promise<void>;
  /**
   * Lets go of these cells. Resolves when nothing of them is in memory.
   *
   * @param flush true: makes everything durable first. False: this process may write nothing of these cells and tell
   * nothing of them to clients; it lets go within the current turn
   */
  drop(cells: ReadonlySet<number>, flush: boolean): Promise<void>;
  /** The cells with work that ends when this process lets go of them, such as a task: they do not move to even out shares. */
  working?(): Iterable<number>;
  /** Resolves when all commits that are in flight now have ended: another process may then read what they wrote. */
  written?(): Promise<void>;
}

/** Cells that the transports let go of. */
export interface LeavingCells {
  readonly cells: ReadonlySet<number>;
  readonly flush: boolean;
  /** Receives what the sender waits for. */
  readonly settling: Promise<void>[];
}
