/** The node for which the store writes: each commit locks the node's row, and writes nothing if the node is fenced. */

export class WriteFence {
  #node: string | undefined;
  #refused: (() => void) | undefined;
  readonly #taken: () => void;

  /** @param taken called when cells came from another node, whose writes this process has not seen */
  constructor(taken: () => void) {
    this.#taken = taken;
  }

  /** The node's id; undefined before it joins, and once it has left or is fenced: no commit passes then. */
  get node(): string | undefined {
    return this.#node;
  }

  /** The node has joined. @param refused called once, if the database refuses a commit because the node is fenced */
  join(node: string, refused: () => void): void {
    this.#node = node;
    this.#refused = refused;
    this.#taken();
  }

  /** The node has left, or must assume that it is fenced. */
  leave(): void {
    this.#node = undefined;
    this.#refused = undefined;
  }

  /** The node owns cells that another one may have written. Call before the first read of them. */
  took(): void {
    this.#taken();
  }

  /** The database has refused a commit of this node. */
  refuse(node: string): void {
    if (node !== this.#node) return;
    const refused = this.#refused;
    this.leave();
    refused?.();
  }
}
