/** The timers of hibernating instances: those that are due soon wait in memory, all others in the store only. */
import type { Clock } from '../../core/kernel/clock.ts';
import { TimerQueue } from '../../core/kernel/timer-queue.ts';
import type { Store, TimerPlace, TimerRow } from '../../core/store/store.ts';

/** The span in milliseconds of a read: timers that are due later stay in the store. */
const AHEAD_MS = 3_600_000;
/** Milliseconds between the next read and the first timer that it finds: the time for a store that is slow or away. */
const LEAD_MS = 600_000;
/** Milliseconds until a read that has failed is repeated. */
const RETRY_MS = 1_000;
/** Number of rows per read. */
const PAGE = 1_000;
/** Maximum number of dates of later timers in memory, for the inspector. */
const MOST_LATER = 100;
/** The id of the next read in the queue; no instance has it. */
const READ = '';

interface StoredTimersOptions {
  readonly clock: Clock;
  readonly store: Store;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  date(): number;
  /** Receives each instance whose timer is due. */
  wake(id: string): void;
  /** Receives each timer that the store has until the end of a read; the earliest first. */
  found(row: TimerRow): void;
  /** A read has failed and is repeated. */
  failed(error: unknown): void;
}

export class StoredTimers {
  readonly #options: StoredTimersOptions;
  readonly #queue: TimerQueue;
  /** The cells whose timers are read; undefined for all, as long as no cell was taken. */
  #cells: Set<number> | undefined;
  /** All timers that are due by then have been read, or were added since; undefined before the first read. */
  #readUntil: number | undefined;
  /** Timers that are due by then wait in the queue when they are added. It is never before `#readUntil`. */
  #horizon = Number.NEGATIVE_INFINITY;
  /** No timer that only the store has is due before, unless it is being read. */
  #later = Number.POSITIVE_INFINITY;
  /** The latest dates that were added beyond the horizon. */
  readonly #laterDates = new Map<string, number>();
  #stopped = false;

  constructor(options: StoredTimersOptions) {
    this.#options = options;
    this.#queue = new TimerQueue(options.clock, options.date, (id) => {
      if (id === READ) void this.#readNext();
      else options.wake(id);
    });
  }

  has(id: string): boolean {
    return this.#queue.has(id);
  }

  /** The date of the next timer of an instance, as far as it is known. */
  dueOf(id: string): number | undefined {
    return this.#queue.dueOf(id) ?? this.#laterDates.get(id);
  }

  /** Adds the next timer of an instance, which is durable. */
  add(id: string, due: number): void {
    this.delete(id);
    if (due <= this.#end()) return this.#queue.add(id, due);
    this.#laterDates.set(id, due);
    for (const oldest of this.#laterDates.keys())
      if (this.#laterDates.size <= MOST_LATER || this.#laterDates.delete(oldest)) break;
    this.#waits(due);
  }

  /** Adds a date at which an instance is activated, and which the store does not have. */
  addUnstored(id: string, due: number): void {
    this.#queue.add(id, due);
  }

  delete(id: string): void {
    this.#queue.delete(id);
    this.#laterDates.delete(id);
  }

  /** Reads the timers of these cells, or of all. The instances are known. @throws {StoreError} */
  async take(cells: readonly number[] | undefined): Promise<void> {
    if (cells) this.#cells ??= new Set();
    for (const cell of cells ?? []) this.#cells?.add(cell);
    const until = this.#end();
    this.#readUntil ??= until;
    await this.#read(Number.MIN_SAFE_INTEGER, until, cells);
  }

  drop(cells: ReadonlySet<number>): void {
    for (const cell of cells) this.#cells?.delete(cell);
  }

  stop(): void {
    this.#stopped = true;
    this.#queue.stop();
  }

  /** The horizon, which moves with the time as long as the store has no timer before it. */
  #end(): number {
    const end = this.#options.date() + AHEAD_MS;
    if (this.#later > end) this.#horizon = Math.max(this.#horizon, end);
    return this.#horizon;
  }

  /** The store has a timer that is due then: the next read is before it. */
  #waits(due: number): void {
    if (due >= this.#later || this.#stopped) return;
    this.#later = due;
    this.#queue.add(READ, due - LEAD_MS);
  }

  async #readNext(): Promise<void> {
    const { date, failed } = this.#options;
    const from = this.#readUntil ?? Number.MIN_SAFE_INTEGER;
    // An instance that hibernates during the read adds its timer itself: the read may have missed it.
    this.#later = Number.POSITIVE_INFINITY;
    const until = this.#end();
    try {
      await this.#read(from, until, this.#cells && [...this.#cells]);
      this.#readUntil = until;
    } catch (error) {
      if (this.#stopped) return;
      this.#later = Math.min(this.#later, from);
      this.#queue.add(READ, date() + RETRY_MS);
      failed(error);
    }
  }

  /** Reads the timers that are due from one date until another, and the date of the first one after that. */
  async #read(from: number, until: number, cells: readonly number[] | undefined): Promise<void> {
    const { store, found } = this.#options;
    for (let after = beginningAt(from); ; ) {
      const rows = await store.timers(until, PAGE, { after, cells });
      if (this.#stopped) return;
      for (const row of rows) found(row);
      const last = rows.at(-1);
      if (!last || rows.length < PAGE) break;
      after = last;
    }
    // Of any cell: the database finds it at once then.
    const [next] = await store.timers(Number.MAX_SAFE_INTEGER, 1, { after: beginningAt(until) });
    if (next) this.#waits(next.due);
  }
}

/** A place before all timers of a date. */
function beginningAt(due: number): TimerPlace {
  return { due, actor: '', timer: '' };
}
