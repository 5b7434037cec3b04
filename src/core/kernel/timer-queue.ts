/** The timers of hibernating instances, in the order of their dates. One timer of the system runs, for the earliest of them. */
import type { Clock, Timer } from './clock.ts';

/** The longest wait in milliseconds: the dates of a database may pass faster than the time of this process. */
const LONGEST_WAIT_MS = 30_000;
/** Maximum number of instances to wake in one turn of the event loop. */
const MOST_WOKEN = 256;

interface Entry {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly due: number;
  /** Its place in the heap. */
  at: number;
}

export class TimerQueue {
  readonly #clock: Clock;
  readonly #date: () => number;
  readonly #wake: (id: string) => void;
  readonly #entries = new Map<string, Entry>();
  /** A binary heap: no entry is due later than the two at twice its place, plus one and plus two. */
  readonly #heap: Entry[] = [];
  /** The timer of the system, and the date for which it runs. */
  #next: { readonly timer: Timer; readonly due: number } | undefined;

  constructor(clock: Clock, date: () => number, wake: (id: string) => void) {
    this.#clock = clock;
    this.#date = date;
    this.#wake = wake;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** The date of its next timer; undefined without one. */
  dueOf(id: string): number | undefined {
    return this.#entries.get(id)?.due;
  }

  ids(): readonly string[] {
    return [...this.#entries.keys()];
  }

  add(id: string, due: number): void {
    this.delete(id);
    const entry = { id, due, at: this.#heap.length };
    this.#entries.set(id, entry);
    this.#heap.push(entry);
    this.#rise(entry);
    this.#arm();
  }

  delete(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.delete(id);
    const last = this.#heap.pop();
    if (last && last !== entry) {
      this.#put(last, entry.at);
      this.#rise(last);
      this.#sink(last);
    }
    if (this.#heap.length === 0) this.#disarm();
  }

  stop(): void {
    this.#entries.clear();
    this.#heap.length = 0;
    this.#disarm();
  }

  #disarm(): void {
    this.#next?.timer.cancel();
    this.#next = undefined;
  }

  /** A timer that runs too early for the earliest entry starts the next one. */
  #arm(): void {
    const [first] = this.#heap;
    if (!first || (this.#next && this.#next.due <= first.due)) return;
    this.#disarm();
    const now = this.#date();
    const ms = Math.min(LONGEST_WAIT_MS, Math.max(0, Math.ceil(first.due - now)));
    this.#next = { timer: this.#clock.after(ms, () => this.#fire()), due: Math.min(first.due, now + ms) };
  }

  #fire(): void {
    this.#next = undefined;
    const now = this.#date();
    for (let woken = 0; woken < MOST_WOKEN; woken += 1) {
      const [first] = this.#heap;
      if (!first || first.due > now) break;
      this.delete(first.id);
      this.#wake(first.id);
    }
    this.#arm();
  }

  #put(entry: Entry, at: number): void {
    entry.at = at;
    this.#heap[at] = entry;
  }

  #rise(entry: Entry): void {
    for (;;) {
      const above = this.#heap[(entry.at - 1) >> 1];
      if (entry.at === 0 || !above || above.due <= entry.due) return;
      this.#swap(above, entry);
    }
  }

  #sink(entry: Entry): void {
    for (;;) {
      const left = this.#heap[2 * entry.at + 1];
      const right = this.#heap[2 * entry.at + 2];
      const least = left && right && right.due < left.due ? right : left;
      if (!least || least.due >= entry.due) return;
      this.#swap(entry, least);
    }
  }

  #swap(above: Entry, below: Entry): void {
    const { at } = above;
    this.#put(above, below.at);
    this.#put(below, at);
  }
}
