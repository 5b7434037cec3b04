/** A log in the order of sequence numbers: binary search, and removal of the oldest items. */

export interface Placed {
  readonly seq: number;
  readonly at: number;
}

/** Live: later than every record. */
export const LIVE = Number.POSITIVE_INFINITY;

export class OrderedLog<T extends Placed> {
  #items: T[] = [];
  /** Items before it are removed; they are cut off when they are half of all. */
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

  /** The sequence number must not be lower than that of the last item. */
  add(item: T): void {
    this.#items.push(item);
  }

  /** The number of items at or before a sequence number. */
  count(seq: number): number {
    return this.#search((item) => item.seq <= seq);
  }

  /** The number of items at or before a time. */
  countUntil(at: number): number {
    return this.#search((item) => item.at <= at);
  }

  /** The last item at or before a sequence number. */
  before(seq: number): T | undefined {
    return seq === LIVE ? this.last : this.at(this.count(seq) - 1);
  }

  /** The item with that sequence number. */
  find(seq: number): T | undefined {
    const item = this.before(seq);
    return item?.seq === seq ? item : undefined;
  }

  slice(from: number, to: number): readonly T[] {
    return this.#items.slice(this.#head + Math.max(0, from), this.#head + Math.max(0, to));
  }

  /** The items at or before a sequence number. */
  until(seq: number): readonly T[] {
    return this.slice(0, seq === LIVE ? this.length : this.count(seq));
  }

  /**
   * Removes the items before a sequence number. @param keep how many of these stay: the last one has the state at that
   * record
   */
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

  /** The length of the first part of the log, for which the test is true. */
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
