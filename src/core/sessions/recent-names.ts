/** The newest names of a session or of a principal's keys, up to a limit. */
export class RecentNames {
  readonly #most: number;
  readonly #known = new Set<string>();
  /** A ring: a set alone would pass all names that it has deleted on its way to the oldest. */
  readonly #ring: string[] = [];
  #oldest = 0;

  /** @param most number of names, at least 1 */
  constructor(most: number) {
    this.#most = most;
  }

  has(name: string): boolean {
    return this.#known.has(name);
  }

  /** Adds a name, if it is new. @returns the oldest name, if it had to make room */
  add(name: string): string | undefined {
    if (this.#known.has(name)) return undefined;
    this.#known.add(name);
    if (this.#ring.length < this.#most) {
      this.#ring.push(name);
      return undefined;
    }
    const gone = this.#ring[this.#oldest];
    this.#ring[this.#oldest] = name;
    this.#oldest = (this.#oldest + 1) % this.#most;
    if (gone !== undefined) this.#known.delete(gone);
    return gone;
  }
}
