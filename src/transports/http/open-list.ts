/** The open exchanges and streams, as a linked list: one comes and goes with every request, and a `Set` would keep its dead in memory (docs/adr/0006). */

/** Something with an open response, that wants looking after from time to time. */
export interface Open {
  /** Its neighbours in the list; set by the list only. */
  before: Open | undefined;
  after: Open | undefined;
  /**
   * Keeps a silent response open; drops a client that takes nothing.
   *
   * @param now milliseconds of the server's clock
   * @param keepAliveMs milliseconds of silence after which a comment is sent
   * @param stallMs milliseconds after which a client that takes nothing is dropped
   * @returns false when it was dropped
   */
  tend(now: number, keepAliveMs: number, stallMs: number): boolean;
}

export class OpenList {
  #first: Open | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(open: Open): void {
    open.before = undefined;
    open.after = this.#first;
    if (this.#first) this.#first.before = open;
    this.#first = open;
    this.#size += 1;
  }

  /** The caller has added it, and not removed it since. */
  remove(open: Open): void {
    if (open.before) open.before.after = open.after;
    else this.#first = open.after;
    if (open.after) open.after.before = open.before;
    open.before = open.after = undefined;
    this.#size -= 1;
  }

  /** All of them, as they are now. */
  all(): readonly Open[] {
    const all: Open[] = [];
    for (let open = this.#first; open; open = open.after) all.push(open);
    return all;
  }
}
