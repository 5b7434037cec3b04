/**
 * Schedules the timers of hibernating instances. When an instance's next timer is due, the instance is read from the
 * store.
 */
import type { Clock, Timer } from './clock.ts';

/** Look-ahead in milliseconds. A timer that is due later occupies a map entry and no system timer. */
const WINDOW_MS = 30_000;

export class TimerQueue {
  readonly #clock: Clock;
  readonly #date: () => number;
  readonly #wake: (id: string) => void;
  /** The due time of each instance, in milliseconds since 1970. */
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

  /** The date of its next timer; undefined without one. */
  dueOf(id: string): number | undefined {
    return this.#due.get(id);
  }

  ids(): readonly string[] {
    return [...this.#due.keys()];
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
