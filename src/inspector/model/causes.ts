/** Which record led to which: from any of them up to the message of the wire that began it, and down to all that followed. */
import type { TraceRecord } from '../frames.ts';
import { OrderedLog, type Placed } from './ordered-log.ts';

/** A record in the order of all of them, tied to what it caused. */
interface Kept extends Placed {
  readonly record: TraceRecord;
  /** The place of the first of its causes that is known. */
  readonly root: number;
  /** What it caused, in order. Only forwards: what is forgotten is held by nothing that stays. */
  first?: Kept;
  last?: Kept;
  next?: Kept;
}

/** Most records that are told of what followed from one. */
const MOST = 2_000;

export class Causes {
  readonly #log = new OrderedLog<Kept>();

  get length(): number {
    return this.#log.length;
  }

  get oldest(): TraceRecord | undefined {
    return this.#log.first?.record;
  }

  get newest(): TraceRecord | undefined {
    return this.#log.last?.record;
  }

  /** @returns the place of the first of its causes that is known */
  add(record: TraceRecord): number {
    const { seq, at, cause } = record;
    const parent = cause === 0 ? undefined : this.#log.find(cause);
    const kept: Kept = { seq, at, record, root: parent?.root ?? seq };
    this.#log.add(kept);
    if (parent) {
      if (parent.last) parent.last.next = kept;
      else parent.first = kept;
      parent.last = kept;
    }
    return kept.root;
  }

  find(seq: number): TraceRecord | undefined {
    return this.#log.find(seq)?.record;
  }

  /** The last record at or before a place. */
  before(seq: number): TraceRecord | undefined {
    return this.#log.before(seq)?.record;
  }

  /** The record that is so many after the last at or before a place; the first or the last, where there are not as many. */
  step(seq: number, by: number): TraceRecord | undefined {
    const index = this.#log.count(seq) - 1 + by;
    return this.#log.at(Math.max(0, Math.min(index, this.#log.length - 1)))?.record;
  }

  /** The last record at or before a time. */
  atTime(at: number): TraceRecord | undefined {
    return this.#log.at(this.#log.countUntil(at) - 1)?.record;
  }

  /** How many records there are between two times. */
  between(from: number, to: number): number {
    return this.#log.countUntil(to) - this.#log.countUntil(from);
  }

  root(seq: number): number {
    return this.#log.find(seq)?.root ?? seq;
  }

  /** The record, what caused it, what caused that, up to the first. */
  because(seq: number): readonly TraceRecord[] {
    const chain: TraceRecord[] = [];
    for (let record = this.find(seq); record !== undefined; record = this.find(record.cause)) {
      chain.push(record);
      // A cause is always older: anything else would go round for ever.
      if (record.cause >= record.seq) break;
    }
    return chain;
  }

  /** What followed from a record, in the order of the stream, without itself. */
  followed(seq: number): readonly TraceRecord[] {
    const found: TraceRecord[] = [];
    const start = this.#log.find(seq)?.first;
    const open: Kept[] = start ? [start] : [];
    for (let kept = open.pop(); kept !== undefined && found.length < MOST; kept = open.pop()) {
      found.push(kept.record);
      if (kept.next) open.push(kept.next);
      if (kept.first) open.push(kept.first);
    }
    return found.sort((a, b) => a.seq - b.seq);
  }

  records(from: number, to: number): readonly TraceRecord[] {
    return this.#log.slice(this.#log.count(from - 1), this.#log.count(to)).map(({ record }) => record);
  }

  /** The place of the record at which so many of the newest begin. */
  newestFrom(count: number): number {
    return this.#log.at(this.#log.length - count)?.seq ?? 0;
  }

  forget(seq: number): void {
    this.#log.forget(seq);
  }

  clear(): void {
    this.#log.clear();
  }
}
