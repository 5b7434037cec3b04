/**
 * Causes and consequences of records: from each record up to the wire message that started it, and down to everything
 * that followed.
 */
import type { TraceRecord } from '../frames.ts';
import { OrderedLog, type Placed } from './ordered-log.ts';

/** A record linked to its consequences. */
interface LinkedRecord extends Placed {
  readonly record: TraceRecord;
  /** The sequence number of its first known cause. */
  readonly root: number;
  /** Its consequences, in order. The links point only forwards, so that nothing retains discarded records. */
  first?: LinkedRecord;
  last?: LinkedRecord;
  next?: LinkedRecord;
}

/** Maximum number of returned consequences of a record. */
const MOST = 2_000;

export class Causes {
  readonly #log = new OrderedLog<LinkedRecord>();

  get length(): number {
    return this.#log.length;
  }

  get oldest(): TraceRecord | undefined {
    return this.#log.first?.record;
  }

  get newest(): TraceRecord | undefined {
    return this.#log.last?.record;
  }

  /** @returns the sequence number of the first known cause */
  add(record: TraceRecord): number {
    const { seq, at, cause } = record;
    const parent = cause === 0 ? undefined : this.#log.find(cause);
    const linked: LinkedRecord = { seq, at, record, root: parent?.root ?? seq };
    this.#log.add(linked);
    if (parent) {
      if (parent.last) parent.last.next = linked;
      else parent.first = linked;
      parent.last = linked;
    }
    return linked.root;
  }

  find(seq: number): TraceRecord | undefined {
    return this.#log.find(seq)?.record;
  }

  /** The last record at or before a sequence number. */
  before(seq: number): TraceRecord | undefined {
    return this.#log.before(seq)?.record;
  }

  /**
   * The record that many records after the last one at or before a sequence number, limited to the first and the last
   * record.
   */
  step(seq: number, by: number): TraceRecord | undefined {
    const index = this.#log.count(seq) - 1 + by;
    return this.#log.at(Math.max(0, Math.min(index, this.#log.length - 1)))?.record;
  }

  /** The last record at or before a time. */
  atTime(at: number): TraceRecord | undefined {
    return this.#log.at(this.#log.countUntil(at) - 1)?.record;
  }

  /** The number of records between two times. */
  between(from: number, to: number): number {
    return this.#log.countUntil(to) - this.#log.countUntil(from);
  }

  root(seq: number): number {
    return this.#log.find(seq)?.root ?? seq;
  }

  /** The record, its cause, the cause of that, up to the first known one. */
  because(seq: number): readonly TraceRecord[] {
    const chain: TraceRecord[] = [];
    for (let record = this.find(seq); record !== undefined; record = this.find(record.cause)) {
      chain.push(record);
      // A cause is always older. Otherwise the loop would not end.
      if (record.cause >= record.seq) break;
    }
    return chain;
  }

  /** The consequences of a record, in the order of the stream, without the record itself. */
  followed(seq: number): readonly TraceRecord[] {
    const found: TraceRecord[] = [];
    const start = this.#log.find(seq)?.first;
    const open: LinkedRecord[] = start ? [start] : [];
    for (let linked = open.pop(); linked !== undefined && found.length < MOST; linked = open.pop()) {
      found.push(linked.record);
      if (linked.next) open.push(linked.next);
      if (linked.first) open.push(linked.first);
    }
    return found.sort((a, b) => a.seq - b.seq);
  }

  records(from: number, to: number): readonly TraceRecord[] {
    return this.#log.slice(this.#log.count(from - 1), this.#log.count(to)).map(({ record }) => record);
  }

  /** The sequence number of the first of that many newest records. */
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
