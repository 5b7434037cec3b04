/**
 * Decides for each record at once if it is passed on, with as little work as possible. In a flood, it omits whole
 * exchanges with all their consequences, and samples one every few milliseconds. Records of lifetimes and states always
 * pass.
 */
import type { InspectionRecord } from '../../core/kernel/inspection/records.ts';
import type { GapFrame } from '../frames.ts';

/** Number of records whose decision is stored. Older causes are rare, and the decision for their exchange is used. */
const SPAN = 1 << 20;
const MASK = SPAN - 1;
/** Maximum number of stored exchanges that were sampled during a flood. */
const MAX_SAMPLED_EXCHANGES = 10_000;
/** Maximum number of stored floods: the first and the last record of each. */
const MAX_FLOODS = 64;
/** Maximum number of waiting records of sampled exchanges: one of them may be endless. */
const MAX_PENDING = 20_000;
/**
 * Maximum number of waiting records when another exchange is sampled, whatever the capacity. The rest is for the
 * consequences of exchanges that are already sampled.
 */
const MAX_SAMPLED = MAX_PENDING / 2;
/** Maximum numbers of steps and crashes of omitted exchanges that pass. */
const MAX_STEPS = 500;
const MAX_CRASHES = 500;

interface Flood {
  readonly from: number;
  to: number;
}

/** The omissions since the last {@link RecordSampler.gap}. */
interface Omissions {
  from: number;
  to: number;
  at: number;
  records: number;
  exchanges: number;
}

export class RecordSampler {
  /** Number of records that may wait before exchanges are omitted. */
  capacity: number;
  /** Milliseconds between sampled exchanges beyond the capacity: the samples are spread over the whole flood. */
  every: number;
  /** In ascending order, except for the records that {@link take} adds. */
  #pending: InspectionRecord[] = [];
  /** For each sequence number, 1 if its consequences are omitted. */
  readonly #out = new Uint8Array(SPAN);
  readonly #sampledExchanges = new Set<number>();
  readonly #floods: Flood[] = [];
  #omitted: Omissions | undefined;
  /** For omitted exchanges: live actors that they created, and the last state and step of each actor. */
  readonly #born = new Map<string, InspectionRecord>();
  readonly #states = new Map<string, InspectionRecord>();
  readonly #steps = new Map<string, InspectionRecord>();
  #newest = 0;
  /** The start of the last sampled exchange. */
  #sampled = Number.NEGATIVE_INFINITY;
  #allSteps = 0;
  #crashes = 0;

  constructor(capacity: number, every: number) {
    this.capacity = capacity;
    this.every = every;
  }

  get size(): number {
    return this.#pending.length + this.#born.size + this.#states.size + this.#steps.size + (this.#omitted ? 1 : 0);
  }

  add(record: InspectionRecord): void {
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
    if (opens && this.#omitted) this.#omitted.exchanges += 1;
  }

  /** True if the consequences of a record are omitted. */
  omits(seq: number): boolean {
    return seq !== 0 && this.#isOut(this.#newest, seq);
  }

  /** Removes and returns the waiting records in ascending order. */
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

  /** Puts back records that were not encoded in time, before all newer ones. */
  putBack(records: InspectionRecord[]): void {
    this.#pending = this.#pending.length === 0 ? records : records.concat(this.#pending);
  }

  /** The omissions since the last call, if any. */
  gap(): GapFrame | undefined {
    const omitted = this.#omitted;
    this.#omitted = undefined;
    return omitted && { type: 'gap', ...omitted, why: 'flood' };
  }

  /** True if there is no capacity for the exchange that this record opens. */
  #refuses({ seq, at, type }: InspectionRecord): boolean {
    if (type !== 'wire' && type !== 'mail' && type !== 'emit' && type !== 'timer') return false;
    const waiting = this.#pending.length;
    // A server that is busy without a pause leaves no time for a flush. Early records must not exclude all later
    // exchanges.
    const due = type === 'wire' && at - this.#sampled >= this.every && waiting < MAX_SAMPLED;
    if (waiting >= this.capacity && !due) return true;
    if (type === 'wire') this.#sampled = at;
    if (type === 'wire' && this.#floods.length > 0) {
      this.#sampledExchanges.add(seq);
      if (this.#sampledExchanges.size > MAX_SAMPLED_EXCHANGES)
        for (const oldest of this.#sampledExchanges) return !this.#sampledExchanges.delete(oldest);
    }
    return false;
  }

  #isOut(seq: number, cause: number): boolean {
    if (seq - cause < SPAN) return this.#out[cause & MASK] === 1;
    return !this.#sampledExchanges.has(cause) && this.#floods.some(({ from, to }) => cause >= from && cause <= to);
  }

  /** Keeps the lifetime and the state of actors from a record of an omitted exchange. */
  #reduce(record: InspectionRecord): void {
    switch (record.type) {
      case 'created':
        this.#replace(this.#born, record.actor, record);
        return;
      case 'state':
        return this.#replace(this.#states, record.actor, record);
      case 'step':
        this.#allSteps += 1;
        // If steps wait faster than they are encoded, they would displace everything else.
        if (this.#allSteps <= MAX_STEPS && this.#pending.length < this.capacity + MAX_STEPS) this.#pending.push(record);
        else this.#replace(this.#steps, record.actor, record);
        return;
      case 'crashed':
        this.#crashes += 1;
        if (this.#crashes <= MAX_CRASHES && this.#pending.length < MAX_PENDING) this.#pending.push(record);
        else this.omit(record);
        return;
      case 'gone':
        return this.#gone(record);
      default:
        return this.omit(record);
    }
  }

  #replace(kept: Map<string, InspectionRecord>, actor: string, record: InspectionRecord): void {
    const before = kept.get(actor);
    if (before) this.omit(before);
    kept.set(actor, record);
  }

  /** An actor that starts and ends before any viewer sees it is omitted completely. */
  #gone(record: Extract<InspectionRecord, { type: 'gone' }>): void {
    const { actor } = record;
    const born = this.#born.get(actor);
    if (!born) return void this.#pending.push(record);
    for (const kept of [this.#born, this.#states, this.#steps]) {
      const before = kept.get(actor);
      if (before) this.omit(before);
      kept.delete(actor);
    }
    this.omit(record);
  }

  /** Counts a record as missing. */
  omit({ seq, at }: InspectionRecord): void {
    const omitted = this.#omitted;
    if (omitted) {
      omitted.records += 1;
      if (seq < omitted.from) omitted.from = seq;
      if (seq > omitted.to) omitted.to = seq;
      omitted.at = at;
    } else this.#omitted = { from: seq, to: seq, at, records: 1, exchanges: 0 };
    const flood = this.#floods[this.#floods.length - 1];
    if (flood && seq - flood.to < SPAN / 16) flood.to = Math.max(flood.to, seq);
    else {
      this.#floods.push({ from: seq, to: seq });
      if (this.#floods.length > MAX_FLOODS) this.#floods.shift();
    }
  }
}
