/** Things in the order of their places in the stream: found by binary search, the oldest let go first. */

export interface Placed {
  readonly seq: number;
  readonly at: number;
}

/** Live: later than everything that has been told. */
export const LIVE = Number.POSITIVE_INFINITY;

export class OrderedLog<T extends Placed> {
  #items: T[] = [];
  /** Items before it have been let go; they are cut off when they are half of all. */
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  get last(): T | undefined {
    return this.length === 0 ? undefined : this.#items[this.#items.length - 1];
  }

  at(index: number): T | undefined {
    return index < 0 ? undefined : this.#items[this.#head + index];
  }

  /** Its place must not be before that of the last. */
  add(item: T): void {
    this.#items.push(item);
  }

  /** How many are at or before a place. */
  count(seq: number): number {
    return this.#search((item) => item.seq <= seq);
  }

  /** How many happened at or before a time. */
  countUntil(at: number): number {
    return this.#search((item) => item.at <= at);
  }

  /** The last that is at or before a place. */
  before(seq: number): T | undefined {
    return seq === LIVE ? this.last : this.at(this.count(seq) - 1);
  }

  /** The one at a place. */
  find(seq: number): T | undefined {
    const item = this.before(seq);
    return item?.seq === seq ? item : undefined;
  }

  slice(from: number, to: number): readonly T[] {
    return this.#items.slice(this.#head + Math.max(0, from), this.#head + Math.max(0, to));
  }

  /** Those at or before a place. */
  until(seq: number): readonly T[] {
    return this.slice(0, seq === LIVE ? this.length : this.count(seq));
  }

  /** Lets go of what is before a place. @param keep how many of those stay: the last of them says how things stood there */
  forget(seq: number, keep = 0): void {
    this.#head += Math.max(0, this.count(seq - 1) - keep);
    if (this.#head < 64 || this.#head * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }

  /** How many are in the first part of the log, of which the test is true. */
  #search(test: (item: T) => boolean): number {
    let low = this.#head;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const item = this.#items[middle];
      if (item !== undefined && test(item)) low = middle + 1;
      else high = middle;
    }
    return low - this.#head;
  }
}
