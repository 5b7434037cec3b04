/**
 * The latest frames as text, for viewers that connect later or read slowly. Bounded: dropped frames leave their {@link
 * Baseline}.
 */
import { Buffer } from 'node:buffer';
import type { ChartFrame, GapFrame, TraceRecord } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import { Baseline, isOfTree } from './baseline.ts';

/** One frame for all viewers. */
interface BacklogEntry {
  /** JSON in UTF-8. */
  readonly text: Buffer;
  /** The sequence number of its last record. */
  readonly last: number;
  readonly at: number;
  /** The numbers of records and exchanges before it. */
  readonly records: number;
  readonly exchanges: number;
  /** Its records of lifetimes and states. */
  readonly tree: readonly TraceRecord[];
}

/** Maximum number of bytes of stored frames. */
const MAX_BYTES = 16 * 1024 * 1024;

export class Backlog {
  readonly base = new Baseline();
  readonly #maxBytes: number;
  /** The first stored entry is at {@link #from}. Entries before it await compaction. */
  #entries: (BacklogEntry | undefined)[] = [];
  #from = 0;
  /** The number of frames before the first of `#entries`. */
  #offset = 0;
  #bytes = 0;
  #records = 0;
  #exchanges = 0;
  /** The last dropped record: its sequence number and time, and the totals up to it. */
  #lost = { last: 0, at: 0, records: 0, exchanges: 0 };
  /** The last record that was stored or counted as missing. */
  #last = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The number of the first stored frame, and of the next frame to come. */
  get first(): number {
    return this.#offset + this.#from;
  }

  get end(): number {
    return this.#offset + this.#entries.length;
  }

  get last(): number {
    return this.#last;
  }

  /** The totals until now. */
  get totals(): { readonly records: number; readonly exchanges: number } {
    return { records: this.#records, exchanges: this.#exchanges };
  }

  /** The last dropped record and the totals up to it. */
  get lost(): { readonly last: number; readonly at: number; readonly records: number; readonly exchanges: number } {
    return this.#lost;
  }

  at(number: number): BacklogEntry | undefined {
    return this.#entries[number - this.#offset];
  }

  /** The number of the first frame after that sequence number. */
  after(seq: number): number {
    let number = this.end;
    while (number > this.first && (this.at(number - 1)?.last ?? 0) > seq) number -= 1;
    return number;
  }

  addRecords(records: readonly TraceRecord[], texts: readonly string[]): void {
    const last = records[records.length - 1];
    if (!last) return;
    this.#add(`{"type":"records","records":[${texts.join(',')}]}`, last, records.filter(isOfTree));
    this.#records += records.length;
    for (const record of records) if (record.type === 'wire' && record.direction === 'in') this.#exchanges += 1;
  }

  addGap(gap: GapFrame): void {
    this.#add(jsonTextOf(gap), { seq: this.#last, at: gap.at }, []);
  }

  addChart(chart: ChartFrame): void {
    this.#add(jsonTextOf(chart), { seq: this.#last, at: this.#lost.at }, []);
  }

  /** Discards everything: the records that follow have no connection with it. */
  clear(): void {
    this.#offset = this.end;
    this.#entries = [];
    this.#from = 0;
    this.#bytes = 0;
    this.#lost = { ...this.#lost, last: this.#last, records: this.#records, exchanges: this.#exchanges };
    this.base.clear();
  }

  #add(line: string, { seq, at }: Pick<TraceRecord, 'seq' | 'at'>, tree: readonly TraceRecord[]): void {
    const text = Buffer.from(line);
    this.#last = Math.max(this.#last, seq);
    this.#entries.push({ text, last: seq, at, records: this.#records, exchanges: this.#exchanges, tree });
    this.#bytes += text.length;
    while (this.#bytes > this.#maxBytes && this.#from < this.#entries.length - 1) this.#drop();
    if (this.#from < 1_024 || this.#from * 2 < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#from);
    this.#offset += this.#from;
    this.#from = 0;
  }

  #drop(): void {
    const entry = this.#entries[this.#from];
    this.#entries[this.#from] = undefined;
    this.#from += 1;
    if (!entry) return;
    this.#bytes -= entry.text.length;
    for (const record of entry.tree) this.base.add(record);
    const next = this.#entries[this.#from];
    this.#lost = {
      last: Math.max(this.#lost.last, entry.last),
      at: entry.at,
      records: next?.records ?? this.#records,
      exchanges: next?.exchanges ?? this.#exchanges,
    };
  }
}
