/**
 * Hears every record, and does as little as can be: it decides at once whether the record is told. When more happens than can be
 * told, whole exchanges are left out, each with everything that it led to; some are told from all of that time, one every few
 * milliseconds. What shows which actors live, and in which state, is told all the same.
 */
import type { InspectionRecord } from '../../inspection/records.ts';
import type { GapFrame } from '../frames.ts';

/** Records for which it is remembered whether what they led to is left out. What is older is rare, and remembered by its exchange. */
const SPAN = 1 << 20;
const MASK = SPAN - 1;
/** Exchanges that are told in the middle of others that are left out, and for how many it is remembered. */
const MAX_TOLD = 10_000;
/** Times in which exchanges were left out, and for how many it is remembered: the first and last record of each. */
const MAX_FLOODS = 64;
/** Most that waits, of exchanges that are told: one of them may go on without end. */
const MAX_PENDING = 20_000;
/** Most that waits when another exchange begins to be told, whatever the capacity: the rest is for what those that are told go on to do. */
const MAX_SAMPLED = MAX_PENDING / 2;
/** Most of these that are told of exchanges that are left out. */
const MAX_STEPS = 500;
const MAX_CRASHES = 500;

interface Flood {
  readonly from: number;
  to: number;
}

/** What was left out since this was last asked. */
interface Left {
  from: number;
  to: number;
  at: number;
  records: number;
  exchanges: number;
}

export class RecordSampler {
  /** Records that may wait before exchanges are left out. */
  capacity: number;
  /** Milliseconds after which another exchange is told also beyond the capacity: what is told of a flood is from all of it. */
  every: number;
  /** Ascending by place, but for what {@link take} adds. */
  #pending: InspectionRecord[] = [];
  /** For each place, 1 if what it led to is left out. */
  readonly #out = new Uint8Array(SPAN);
  readonly #told = new Set<number>();
  readonly #floods: Flood[] = [];
  #left: Left | undefined;
  /** Of exchanges that are left out: who was created by them and still lives, and the last state and step of each actor. */
  readonly #born = new Map<string, InspectionRecord>();
  readonly #states = new Map<string, InspectionRecord>();
  readonly #steps = new Map<string, InspectionRecord>();
  #newest = 0;
  /** When the last exchange that is told began. */
  #sampled = Number.NEGATIVE_INFINITY;
  #allSteps = 0;
  #crashes = 0;

  constructor(capacity: number, every: number) {
    this.capacity = capacity;
    this.every = every;
  }

  get size(): number {
    return this.#pending.length + this.#born.size + this.#states.size + this.#steps.size + (this.#left ? 1 : 0);
  }

  hear(record: InspectionRecord): void {
    const { seq, cause, type } = record;
    this.#newest = seq;
    const opens = type === 'wire' && record.direction === 'in';
    const begins = opens || cause === 0;
    const out = begins ? this.#refuses(record) : this.#isOut(seq, cause);
    this.#out[seq & MASK] = out ? 1 : 0;
    if (!out) {
      if (this.#pending.length < MAX_PENDING || type === 'created' || type === 'gone') this.#pending.push(record);
      else this.#reduce(record);
      return;
    }
    this.#reduce(record);
    if (opens && this.#left) this.#left.exchanges += 1;
  }

  /** Whether what a record leads to is left out. */
  leavesOut(seq: number): boolean {
    return seq !== 0 && this.#isOut(this.#newest, seq);
  }

  /** Takes out what waits, ascending by place. */
  take(): InspectionRecord[] {
    const taken = this.#pending;
    this.#pending = [];
    if (this.#born.size + this.#states.size + this.#steps.size > 0) {
      for (const kept of [this.#born, this.#states, this.#steps]) {
        for (const record of kept.values()) taken.push(record);
        kept.clear();
      }
      taken.sort((a, b) => a.seq - b.seq);
    }
    this.#allSteps = 0;
    this.#crashes = 0;
    return taken;
  }

  /** Puts back what could not be told yet: it comes before everything that has come since. */
  putBack(records: InspectionRecord[]): void {
    this.#pending = this.#pending.length === 0 ? records : records.concat(this.#pending);
  }

  /** What was left out since this was last asked, if anything was. */
  gap(): GapFrame | undefined {
    const left = this.#left;
    this.#left = undefined;
    return left && { type: 'gap', ...left, why: 'flood' };
  }

  /** Whether there is no room for what begins with this record. */
  #refuses({ seq, at, type }: InspectionRecord): boolean {
    if (type !== 'wire' && type !== 'mail' && type !== 'emit' && type !== 'timer') return false;
    const waiting = this.#pending.length;
    // A server that is busy without a pause leaves no time to flush: what waits from its beginning must not keep out all the rest.
    const due = type === 'wire' && at - this.#sampled >= this.every && waiting < MAX_SAMPLED;
    if (waiting >= this.capacity && !due) return true;
    if (type === 'wire') this.#sampled = at;
    if (type === 'wire' && this.#floods.length > 0) {
      this.#told.add(seq);
      if (this.#told.size > MAX_TOLD) for (const oldest of this.#told) return !this.#told.delete(oldest);
    }
    return false;
  }

  #isOut(seq: number, cause: number): boolean {
    if (seq - cause < SPAN) return this.#out[cause & MASK] === 1;
    return !this.#told.has(cause) && this.#floods.some(({ from, to }) => cause >= from && cause <= to);
  }

  /** Of a record that is left out, keeps what tells who lives, and in which state. */
  #reduce(record: InspectionRecord): void {
    switch (record.type) {
      case 'created':
        this.#replace(this.#born, record.actor, record);
        return;
      case 'state':
        return this.#replace(this.#states, record.actor, record);
      case 'step':
        this.#allSteps += 1;
        // Where more wait than are told, they would soon be all that is told.
        if (this.#allSteps <= MAX_STEPS && this.#pending.length < this.capacity + MAX_STEPS) this.#pending.push(record);
        else this.#replace(this.#steps, record.actor, record);
        return;
      case 'crashed':
        this.#crashes += 1;
        if (this.#crashes <= MAX_CRASHES && this.#pending.length < MAX_PENDING) this.#pending.push(record);
        else this.leave(record);
        return;
      case 'gone':
        return this.#gone(record);
      default:
        return this.leave(record);
    }
  }

  #replace(kept: Map<string, InspectionRecord>, actor: string, record: InspectionRecord): void {
    const before = kept.get(actor);
    if (before) this.leave(before);
    kept.set(actor, record);
  }

  /** What came and went before anybody was told of it is left out whole. */
  #gone(record: Extract<InspectionRecord, { type: 'gone' }>): void {
    const { actor } = record;
    const born = this.#born.get(actor);
    if (!born) return void this.#pending.push(record);
    for (const kept of [this.#born, this.#states, this.#steps]) {
      const before = kept.get(actor);
      if (before) this.leave(before);
      kept.delete(actor);
    }
    this.leave(record);
  }

  /** Accounts for a record that is not told. */
  leave({ seq, at }: InspectionRecord): void {
    const left = this.#left;
    if (left) {
      left.records += 1;
      if (seq < left.from) left.from = seq;
      if (seq > left.to) left.to = seq;
      left.at = at;
    } else this.#left = { from: seq, to: seq, at, records: 1, exchanges: 0 };
    const flood = this.#floods[this.#floods.length - 1];
    if (flood && seq - flood.to < SPAN / 16) flood.to = Math.max(flood.to, seq);
    else {
      this.#floods.push({ from: seq, to: seq });
      if (this.#floods.length > MAX_FLOODS) this.#floods.shift();
    }
  }
}
