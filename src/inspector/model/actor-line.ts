/** The history of one actor: its lives, its states, the steps of its chart, what was sent to it. */
import type { ActorKind, Created, Look, Plain, RecordHeader, Stepped, Timed, TraceRecord } from '../frames.ts';
import { LIVE, OrderedLog, type Placed } from './ordered-log.ts';

/** How an actor was from one place of the stream on. */
export interface Standing extends Placed {
  readonly state: string;
  /** The paths of what is active in its chart; empty where it has none. */
  readonly active: readonly string[];
  /** The event and the transitions that led there, where they are known. */
  readonly event?: string;
  readonly edges: readonly string[];
}

/** A time between `created` and `gone`. */
export interface ActorLife extends Placed {
  readonly end?: number;
  readonly endAt?: number;
  readonly why?: string;
}

/** A delay that runs. */
export interface PendingTimer {
  readonly id: string;
  readonly event: string;
  readonly delay: number;
  readonly due: number;
}

interface Context extends Placed {
  readonly context: Plain;
}

interface Seen extends Placed {
  readonly look: Look;
}

/** Most looks that are kept of one actor: each is how it stood at one time. */
const MOST_LOOKS = 200;

export class ActorLine {
  readonly address: string;
  kind: ActorKind = 'machine';
  parent: string | undefined;
  connection: string | undefined;
  label: string | undefined;
  chart: string | undefined;
  /** The first known cause of its creation: for what serves a request, the message that it came with. */
  origin: number | undefined;
  /** Every record that is about it. */
  readonly records = new OrderedLog<TraceRecord>();
  readonly standings = new OrderedLog<Standing>();
  readonly steps = new OrderedLog<RecordHeader & Stepped>();
  readonly lives = new OrderedLog<ActorLife>();
  readonly timers = new OrderedLog<RecordHeader & Timed>();
  readonly mail = new OrderedLog<TraceRecord>();
  readonly troubles = new OrderedLog<TraceRecord>();
  readonly #contexts = new OrderedLog<Context>();
  readonly #looks = new OrderedLog<Seen>();

  constructor(address: string) {
    this.address = address;
  }

  created(record: RecordHeader & Created): void {
    this.kind = record.kind;
    this.parent = record.parent ?? this.parent;
    this.connection = record.connection ?? this.connection;
    this.label = record.label ?? this.label;
    this.chart = record.chart ?? this.chart;
    // What lives already is told to each viewer anew: that is no second life.
    if (!this.aliveAt(LIVE)) this.lives.add({ seq: record.seq, at: record.at });
  }

  gone(seq: number, at: number, why: string): void {
    const life = this.lives.last;
    if (life && life.end === undefined) Object.assign(life, { end: seq, endAt: at, why });
    else this.lives.add({ seq, at, end: seq, endAt: at, why });
  }

  step(record: RecordHeader & Stepped): void {
    this.steps.add(record);
    if (record.context !== undefined) this.#contexts.add({ seq: record.seq, at: record.at, context: record.context });
    this.#stand({
      seq: record.seq,
      at: record.at,
      state: record.active.length > 0 ? record.active.join(' & ') : record.status,
      active: record.active,
      event: record.event,
      edges: record.edges,
    });
  }

  /** @returns false where it was in that state already */
  state(record: RecordHeader & { readonly state: string }, active: readonly string[]): boolean {
    const { seq, at, state } = record;
    return this.#stand({ seq, at, state, active, edges: [] });
  }

  looked(look: Look): void {
    const last = this.#looks.last;
    // Two looks at one place: the later one, which may know of a longer mailbox.
    if (last && last.seq > look.seq) return;
    this.#looks.add({ seq: look.seq, at: look.at, look });
    const oldest = this.#looks.at(this.#looks.length - MOST_LOOKS);
    if (oldest) this.#looks.forget(oldest.seq);
  }

  /** Whether it lived at a place. */
  aliveAt(seq: number): boolean {
    const life = this.lives.before(seq);
    return life !== undefined && (life.end === undefined || life.end > seq);
  }

  standing(seq: number): Standing | undefined {
    return this.standings.before(seq);
  }

  /** The last step of its chart that took a transition. */
  taken(seq: number): (RecordHeader & Stepped) | undefined {
    for (let index = this.steps.count(seq) - 1; index >= 0; index -= 1) {
      const step = this.steps.at(index);
      if (step && step.edges.length > 0) return step;
    }
    return undefined;
  }

  look(seq: number): Look | undefined {
    return this.#looks.before(seq)?.look;
  }

  /** Its context: of its last step, or as a look has told it since. */
  context(seq: number): Plain | undefined {
    const told = this.#contexts.before(seq);
    const look = this.look(seq);
    return look?.context !== undefined && look.seq >= (told?.seq ?? 0) ? look.context : told?.context;
  }

  /** The delays that run at a place, the next first. */
  running(seq: number): readonly PendingTimer[] {
    const running = new Map<string, PendingTimer>();
    for (const { id, event, delay, due } of this.timers.until(seq)) {
      if (due === undefined) running.delete(id);
      else running.set(id, { id, event, delay, due });
    }
    return [...running.values()].sort((a, b) => a.due - b.due);
  }

  /** Records about it in the given time before a moment, for each second. */
  rate(until: number, ms: number): number {
    return ((this.records.countUntil(until) - this.records.countUntil(until - ms)) * 1_000) / ms;
  }

  /** Lets go of what is before a place; how things stood there stays. */
  forget(seq: number): void {
    this.records.forget(seq);
    this.steps.forget(seq);
    this.mail.forget(seq);
    this.troubles.forget(seq);
    this.standings.forget(seq, 1);
    this.#contexts.forget(seq, 1);
    this.#looks.forget(seq, 1);
    this.lives.forget(seq, 1);
    const open = new Set(this.running(LIVE).map(({ id }) => id));
    const oldest = this.timers.until(seq - 1).find(({ id }) => open.has(id));
    this.timers.forget(oldest?.seq ?? seq);
  }

  #stand(next: Standing): boolean {
    const last = this.standings.last;
    // A step and the state that it led to are told one after the other.
    if (last && last.state === next.state && next.edges.length === 0) return false;
    this.standings.add(next);
    return true;
  }
}
