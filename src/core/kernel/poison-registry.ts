/**
 * Counts how often the same work has ended the process, over restarts, and decides which work must not run again: the poison
 * rule (docs/reliability.md). Calls that block the process and events of handles count here; each of them has its own storage.
 */

/** Number of crashes after which the same work is quarantined. */
const MAX_CRASHES = 2;
/**
 * Number of deaths of the process after which the same work is quarantined if the cause is unknown, because the process may also
 * have been killed. Three deaths during the same work, without surviving it once in between, are not a coincidence.
 */
const MAX_DEATHS = 3;
/** Maximum number of remembered works; the oldest are evicted. */
const MAX_REMEMBERED = 1_000;
/** Milliseconds until a record expires: the cause may have been fixed by then. */
export const REMEMBERED_MS = 86_400_000;

export interface PoisonRecord<Facts> {
  /** Number of times that this work crashed the process. */
  readonly crashes: number;
  /** Number of times that the process died during this work and may have been killed from outside. Reset once it survives the work. */
  readonly unexplained: number;
  /** Date of the last death, in milliseconds since 1970. */
  readonly at: number;
  readonly facts: Facts;
}

/** The mark that a process leaves about the work that it was doing. */
interface DeathMark {
  readonly pid: number;
  /** The process, or its watchdog, has ended it itself. */
  readonly ended: boolean;
}

/**
 * Returns whether a process is known to have crashed, by its own mark or from its supervisor, which has seen its exit code and
 * signal. Otherwise it may have been killed from outside.
 *
 * @param previous the process before this one, as its supervisor reports it
 */
export function hasCrashed(
  mark: DeathMark | undefined,
  previous: { readonly pid: number; readonly crashed: boolean } | undefined,
): boolean {
  if (mark?.ended) return true;
  return previous !== undefined && previous.pid === mark?.pid && previous.crashed;
}

/** @param Facts what else is remembered of a work */
export class PoisonRegistry<Facts> {
  readonly #records = new Map<string, PoisonRecord<Facts>>();
  readonly #date: () => number;

  /** @param date milliseconds since 1970 */
  constructor(date: () => number) {
    this.#date = date;
  }

  /** The number of records. Check it before computing a key. */
  get size(): number {
    return this.#records.size;
  }

  find(key: string): PoisonRecord<Facts> | undefined {
    const record = this.#records.get(key);
    if (!record || this.#isFresh(record)) return record;
    this.#records.delete(key);
    return undefined;
  }

  /** Adds a record of an earlier process. An expired one is ignored. */
  restore(key: string, record: PoisonRecord<Facts>): void {
    if (this.#isFresh(record)) this.#put(key, record);
  }

  /** Counts a death of the process during a work. @param factsOf receives the earlier facts */
  died(
    key: string,
    { crashed, at, factsOf }: { crashed: boolean; at: number; factsOf(before: Facts | undefined): Facts },
  ): PoisonRecord<Facts> {
    const before = this.find(key);
    const { crashes = 0, unexplained = 0 } = before ?? {};
    const record = {
      crashes: crashes + (crashed ? 1 : 0),
      unexplained: unexplained + (crashed ? 0 : 1),
      at,
      facts: factsOf(before?.facts),
    };
    this.#put(key, record);
    return record;
  }

  /** Clears the unexplained deaths during a work that the process has survived. @returns whether there were any */
  survived(key: string): boolean {
    const record = this.#records.get(key);
    if (!record?.unexplained) return false;
    if (record.crashes > 0) this.#records.set(key, { ...record, unexplained: 0 });
    else this.#records.delete(key);
    return true;
  }

  /** Replaces the facts of a record that exists. */
  describe(key: string, facts: Facts): void {
    const record = this.#records.get(key);
    if (record) this.#records.set(key, { ...record, facts });
  }

  /** Forgets a work, which may then run again. @returns its key and record; undefined if none is meant */
  release(
    isMeant: (key: string, record: PoisonRecord<Facts>) => boolean,
  ): readonly [string, PoisonRecord<Facts>] | undefined {
    const found = [...this.records()].find(([key, record]) => isMeant(key, record));
    if (found) this.#records.delete(found[0]);
    return found;
  }

  /** The records that have not expired, oldest first. */
  *records(): Generator<readonly [string, PoisonRecord<Facts>]> {
    for (const entry of this.#records) if (this.#isFresh(entry[1])) yield entry;
  }

  #put(key: string, record: PoisonRecord<Facts>): void {
    this.#records.delete(key);
    this.#records.set(key, record);
    const [oldest] = this.#records.keys();
    if (this.#records.size > MAX_REMEMBERED && oldest !== undefined) this.#records.delete(oldest);
  }

  #isFresh({ at }: PoisonRecord<Facts>): boolean {
    return at + REMEMBERED_MS > this.#date();
  }
}

/** The number of times that the process died during a work, whatever the cause. */
export function deathsOf({ crashes, unexplained }: PoisonRecord<unknown>): number {
  return crashes + unexplained;
}

/** Returns whether a work must not run again. */
export function isPoison(record: PoisonRecord<unknown>): boolean {
  return record.crashes >= MAX_CRASHES || deathsOf(record) >= MAX_DEATHS;
}
