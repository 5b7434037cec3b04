/** The cells of this node: which of them it owns, which of them are moving, and the requests that they serve. */
import { randomInt } from 'node:crypto';
import { CELLS } from '../../core/protocol/cell.ts';

/**
 * `other`: another node owns it, or none. `taking`: this node owns it, and its data is being read. `here`: this node
 * serves it. `moving`: this node lets go of it. `given`: this node writes nothing more of it, and still owns it.
 */
type CellState = 'other' | 'taking' | 'here' | 'moving' | 'given';

export class OwnedCells {
  readonly #states: CellState[] = Array.from({ length: CELLS }, () => 'other');
  /** The cells in the state `here`, in any order. */
  readonly #here: number[] = [];
  /** The place of each cell in that list; -1 if it is not there. */
  readonly #places = new Int16Array(CELLS).fill(-1);
  readonly #busy = new Int32Array(CELLS);
  /** Called after each change of a state, and when a moving cell has no request any more. */
  readonly #waiting = new Set<() => void>();

  /** Number of cells that this node serves. */
  get size(): number {
    return this.#here.length;
  }

  /** The cells that this node serves. */
  get here(): readonly number[] {
    return this.#here;
  }

  stateOf(cell: number): CellState {
    return this.#states[cell] ?? 'other';
  }

  /** The cells in any state but `other`. */
  all(): readonly number[] {
    return this.#states.flatMap((state, cell) => (state === 'other' ? [] : [cell]));
  }

  set(cells: Iterable<number>, state: CellState): void {
    for (const cell of cells) {
      if (this.#states[cell] === 'here') this.#remove(cell);
      this.#states[cell] = state;
      if (state === 'here') this.#places[cell] = this.#here.push(cell) - 1;
    }
    this.#notify();
  }

  /** A random cell that this node serves; undefined if it serves none. */
  random(): number | undefined {
    return this.#here.length === 0 ? undefined : this.#here[randomInt(this.#here.length)];
  }

  /** Counts a request. @returns a function that ends the count, once */
  enter(cell: number): () => void {
    this.#busy[cell] = this.requests(cell) + 1;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const left = this.requests(cell) - 1;
      this.#busy[cell] = left;
      if (left === 0 && this.#states[cell] === 'moving') this.#notify();
    };
  }

  /** Number of requests that a cell serves now. */
  requests(cell: number): number {
    return this.#busy[cell] ?? 0;
  }

  /** Resolves once the condition holds, which is asked after each change. @param timeout resolves earlier */
  async until(condition: () => boolean, timeout: Promise<void>): Promise<void> {
    if (condition()) return;
    let check = (): void => {};
    const holds = new Promise<void>((resolve) => {
      check = () => {
        if (condition()) resolve();
      };
    });
    this.#waiting.add(check);
    await Promise.race([holds, timeout]);
    this.#waiting.delete(check);
  }

  #remove(cell: number): void {
    const place = this.#places[cell] ?? -1;
    const last = this.#here.pop();
    if (last === undefined || place < 0) return;
    this.#places[cell] = -1;
    if (last === cell) return;
    this.#here[place] = last;
    this.#places[last] = place;
  }

  #notify(): void {
    for (const check of this.#waiting) check();
  }
}
