/** Reads of rows by their ids: while a query is on its way, further reads of one turn gather, and share the next query. */
import { systemClock } from '../../core/kernel/clock.ts';
import { StoreError } from '../../core/store/store.ts';

/** Maximum number of ids in one query: their rows are in memory together. */
const MOST_IDS = 256;

interface Read<V> {
  readonly id: string;
  resolve(value: V | undefined): void;
  reject(error: unknown): void;
}

export class GatheredReads<R, V> {
  readonly #most: number;
  readonly #query: (ids: readonly string[]) => Promise<ReadonlyMap<string, R>>;
  readonly #readRow: (row: R) => V;
  /** Number of queries without an answer. */
  #asked = 0;
  #waiting: Read<V>[] = [];
  #scheduled = false;

  /**
   * @param most queries at once
   * @param readRow may throw; then only the read of this row is rejected
   */
  constructor(
    most: number,
    query: (ids: readonly string[]) => Promise<ReadonlyMap<string, R>>,
    readRow: (row: R) => V,
  ) {
    this.#most = most;
    this.#query = query;
    this.#readRow = readRow;
  }

  /** The query begins after this call: it finds what was durable before. Undefined if there is no such row. */
  load(id: string): Promise<V | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, resolve, reject });
      if (this.#asked === 0) this.#ask();
      else this.#askSoon();
    });
  }

  /** After this turn, in which an answered query lets hundreds of further reads begin. */
  #askSoon(): void {
    if (this.#scheduled || this.#asked >= this.#most) return;
    this.#scheduled = true;
    systemClock.soon(() => {
      this.#scheduled = false;
      this.#ask();
    });
  }

  #ask(): void {
    while (this.#waiting.length > 0 && this.#asked < this.#most) {
      this.#asked += 1;
      void this.#read(this.#waiting.splice(0, MOST_IDS)).then(() => {
        this.#asked -= 1;
        if (this.#waiting.length > 0) this.#askSoon();
      });
    }
  }

  async #read(reads: readonly Read<V>[]): Promise<void> {
    let rows: ReadonlyMap<string, R>;
    try {
      rows = await this.#query(reads.map(({ id }) => id));
    } catch (error) {
      // One damaged row fails the query of all, so that each gets one of its own.
      if (reads.length > 1 && error instanceof StoreError && (error.fault === 'failed' || error.fault === 'corrupt'))
        for (const read of reads) await this.#read([read]);
      else for (const { reject } of reads) reject(error);
      return;
    }
    for (const { id, resolve, reject } of reads) {
      const row = rows.get(id);
      try {
        resolve(row === undefined ? undefined : this.#readRow(row));
      } catch (error) {
        reject(error);
      }
    }
  }
}
