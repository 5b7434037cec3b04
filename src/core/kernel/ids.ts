/** Creates the ids of everything that outlives a request; each id carries its cell. */
import { randomInt } from 'node:crypto';
import { CELLS, cellIn, RANDOM_LENGTH, withCell } from '../protocol/cell.ts';
import { randomId } from './random-id.ts';

/** Chooses cells while several nodes share the store. */
export interface CellChoice {
  /** The cell of a principal; of an anonymous caller, a random one that this node owns. */
  cellFor(principal: string): number;
  /** A random cell that this node owns. */
  ownCell(): number;
  /** True if this node may write what belongs to a cell. */
  owns(cell: number): boolean;
}

/** The choice of a process that owns all cells. A cell then means nothing until several nodes share its store. */
const ANY: CellChoice = { cellFor: randomCell, ownCell: randomCell, owns: () => true };

export class Ids {
  #cells = ANY;

  /** Lets a cluster choose the cells from now on. */
  chooseBy(cells: CellChoice): void {
    this.#cells = cells;
  }

  /** Creates an id in the cell of a principal, for what all nodes must count together: sessions and handles. */
  ofPrincipal(principal: string): string {
    return this.#idIn(this.#cells.cellFor(principal));
  }

  /** Creates an id for something that only this process holds, such as an open stream. */
  local(): string {
    return withCell(this.#cells.ownCell(), randomId(RANDOM_LENGTH));
  }

  /**
   * Creates an id in the cell of a session; without a session, a local id.
   *
   * @param requested the cell for which another node has sent the request, or by which this node serves it
   */
  within(session: string | undefined, requested?: number): string {
    const cell = session === undefined ? requested : cellIn(session);
    return cell === undefined ? this.local() : this.#idIn(cell);
  }

  /** Creates the id of a handle: in the cell of its session; without one, of its principal. */
  ofHandle(session: string | undefined, principal: string): string {
    const cell = session === undefined ? undefined : cellIn(session);
    return cell === undefined ? this.ofPrincipal(principal) : this.#idIn(cell);
  }

  /** True if this process may write what has this id. */
  owns(id: string): boolean {
    const cell = cellIn(id);
    return cell !== undefined && this.#cells.owns(cell);
  }

  /**
   * Creates an id in a cell. If another node owns the cell, in one of this node: a session over stdio stays when its cell
   * moves, and a plain tool runs at any node.
   */
  #idIn(cell: number): string {
    return this.#cells.owns(cell) ? withCell(cell, randomId(RANDOM_LENGTH)) : this.local();
  }
}

function randomCell(): number {
  return randomInt(CELLS);
}
