/** The timers of instances that hibernate: when the next of an instance is due, it is read from the store, and its timers with it. */
import type { Clock, Timer } from './clock.ts';

/** Milliseconds that are looked ahead: what is due later costs a place in a map, and no timer. */
const WINDOW_MS = 30_000;

export class TimerQueue {
  readonly #clock: Clock;
  readonly #date: () => number;
  readonly #wake: (id: string) => void;
  /** When each is due, in milliseconds since 1970. */
  readonly #due = new Map<string, number>();
  readonly #timers = new Map<string, Timer>();
  #look: Timer | undefined;

  constructor(clock: Clock, date: () => number, wake: (id: string) => void) {
    this.#clock = clock;
    this.#date = date;
    this.#wake = wake;
  }

  get size(): number {
    return this.#due.size;
  }

  has(id: string): boolean {
    return this.#due.has(id);
  }

  add(id: string, due: number): void {
    this.delete(id);
    this.#due.set(id, due);
    this.#arm(id, due);
    this.#lookLater();
  }

  delete(id: string): void {
    this.#due.delete(id);
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
  }

  stop(): void {
    this.#look?.cancel();
    for (const id of [...this.#timers.keys()]) this.delete(id);
    this.#due.clear();
  }

  #arm(id: string, due: number): void {
    const left = due - this.#date();
    if (left > WINDOW_MS || this.#timers.has(id)) return;
    const timer = this.#clock.after(Math.max(0, Math.ceil(left)), () => {
      this.delete(id);
      this.#wake(id);
    });
    this.#timers.set(id, timer);
  }

  #lookLater(): void {
    if (this.#look || this.#due.size === 0) return;
    this.#look = this.#clock.after(WINDOW_MS / 2, () => {
      this.#look = undefined;
      for (const [id, due] of this.#due) this.#arm(id, due);
      this.#lookLater();
    });
  }
}
