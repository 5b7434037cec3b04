/** The history of one actor: its lifetimes, its states, the steps of its chart, and its messages. */
import type {
  ActorKind,
  ActorView,
  Created,
  Journaled,
  Plain,
  RecordHeader,
  Stepped,
  Timed,
  TraceRecord,
} from '../frames.ts';
import { LIVE, OrderedLog, type Placed } from './ordered-log.ts';

/** The state of an actor from one record on. */
export interface Standing extends Placed {
  readonly state: string;
  /** The paths of the active states of its chart; empty without a chart. */
  readonly active: readonly string[];
  /** The event and the transitions that led to the state, if known. */
  readonly event?: string;
  readonly edges: readonly string[];
  /** True if the actor may have been in this state before its first record. */
  readonly earlier?: boolean;
}

/** The time between `created` and `gone`. */
export interface ActorLife extends Placed {
  /** The time of its creation; undefined if only its first record is known. */
  readonly since?: number;
  readonly end?: number;
  readonly endAt?: number;
  readonly why?: string;
}

/** A moment from which something lasts. */
export interface Since {
  readonly at: number;
  /** True: it may have begun earlier, before the observation. */
  readonly earlier: boolean;
}

/** A running timer. */
export interface PendingTimer {
  readonly id: string;
  readonly event: string;
  readonly delay: number;
  readonly due: number;
}

/** True if a wait in a view is this timer. */
export function isTimer(what: string, { event, id }: Pick<PendingTimer, 'event' | 'id'>): boolean {
  return what === event || what === id || what === `#${event}`;
}

interface Context extends Placed {
  readonly context: Plain;
}

interface Seen extends Placed {
  readonly view: ActorView;
}

/** Maximum number of stored views of one actor. */
const MAX_VIEWS = 200;

export class ActorLine {
  readonly address: string;
  kind: ActorKind = 'machine';
  parent: string | undefined;
  connection: string | undefined;
  label: string | undefined;
  chart: string | undefined;
  /** The first known cause of its creation: for an actor that serves a request, the record of that request. */
  origin: number | undefined;
  /** For the actor of a request: the records of its request, and of each retry with answers. */
  readonly serves = new Set<number>();
  /** Every record about it. */
  readonly records = new OrderedLog<TraceRecord>();
  readonly standings = new OrderedLog<Standing>();
  readonly steps = new OrderedLog<RecordHeader & Stepped>();
  readonly lives = new OrderedLog<ActorLife>();
  readonly timers = new OrderedLog<RecordHeader & Timed>();
  readonly mail = new OrderedLog<TraceRecord>();
  readonly troubles = new OrderedLog<TraceRecord>();
  /** The entries of its journal, each once. */
  readonly journal = new OrderedLog<RecordHeader & Journaled>();
  /** The last `created` record of an actor that existed before it. */
  #introduced = 0;
  readonly #contexts = new OrderedLog<Context>();
  readonly #views = new OrderedLog<Seen>();

  constructor(address: string) {
    this.address = address;
  }

  created(record: RecordHeader & Created): void {
    this.kind = record.kind;
    this.parent = record.parent ?? this.parent;
    this.connection = record.connection ?? this.connection;
    this.label = record.label ?? this.label;
    this.chart = record.chart ?? this.chart;
    // Each new viewer receives `created` for live actors: that is no second lifetime.
    const { seq, at, since } = record;
    if (!this.aliveAt(LIVE)) this.lives.add({ seq, at, ...(since === undefined ? {} : { since }) });
    this.#introduced = since !== undefined && since < at ? seq : 0;
  }

  /** A later viewer gets earlier entries again. */
  wrote(record: RecordHeader & Journaled): void {
    if (record.index > (this.journal.last?.index ?? 0)) this.journal.add(record);
  }

  gone(seq: number, at: number, why: string): void {
    const life = this.lives.last;
    if (life && life.end === undefined) Object.assign(life, { end: seq, endAt: at, why });
    else this.lives.add({ seq, at, end: seq, endAt: at, why });
  }

  step(record: RecordHeader & Stepped): void {
    this.steps.add(record);
    if (record.context !== undefined) this.#contexts.add({ seq: record.seq, at: record.at, context: record.context });
    // A rejected event changes nothing: a view from before it is still valid.
    if (!record.handled && record.edges.length === 0 && this.standings.last) return;
    this.#stand({
      seq: record.seq,
      at: record.at,
      state: record.active.length > 0 ? record.active.join(' & ') : record.status,
      active: record.active,
      event: record.event,
      edges: record.edges,
    });
  }

  /** @returns false if it was already in that state */
  state(record: RecordHeader & { readonly state: string }, active: readonly string[]): boolean {
    const { seq, at, state } = record;
    // The state of an actor that existed before the observation follows its introduction.
    const earlier = this.#introduced === seq - 1 ? { earlier: true } : {};
    return this.#stand({ seq, at, state, active, edges: [], ...earlier });
  }

  viewed(view: ActorView): void {
    const last = this.#views.last;
    // Of two views with the same sequence number, the later one has the current mailbox.
    if (last && last.seq > view.seq) return;
    this.#views.add({ seq: view.seq, at: view.at, view });
    const oldest = this.#views.at(this.#views.length - MAX_VIEWS);
    if (oldest) this.#views.forget(oldest.seq);
  }

  /** True if it was alive at a record. */
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

  /** The start of its life or of its current state, and whether it may be earlier than that. */
  since(of: 'life' | 'state', seq: number): Since | undefined {
    if (of === 'life') {
      const life = this.lives.before(seq);
      return life && { at: life.since ?? life.at, earlier: false };
    }
    const standing = this.standing(seq);
    return standing && { at: standing.at, earlier: standing.earlier === true };
  }

  view(seq: number): ActorView | undefined {
    return this.#views.before(seq)?.view;
  }

  /** Its context, from its last step or from a later view. */
  context(seq: number): Plain | undefined {
    const step = this.#contexts.before(seq);
    const view = this.view(seq);
    return view?.context !== undefined && view.seq >= (step?.seq ?? 0) ? view.context : step?.context;
  }

  /** The running timers at a record, the earliest deadline first. */
  running(seq: number): readonly PendingTimer[] {
    // The record of a timer that started before the observation has its whole delay: a later view has its deadline.
    const view = this.view(seq);
    const running = new Map<string, PendingTimer>();
    for (const { seq: started, id, event, delay, due } of this.timers.until(seq)) {
      const wait =
        view && view.seq >= started ? view.waits.find(({ what }) => isTimer(what, { id, event })) : undefined;
      if (due === undefined) running.delete(id);
      else running.set(id, { id, event, delay, due: Math.min(due, wait?.until ?? due) });
    }
    return [...running.values()].sort((a, b) => a.due - b.due);
  }

  /** The number of its records per second, in the given time before a moment. */
  rate(until: number, ms: number): number {
    return ((this.records.countUntil(until) - this.records.countUntil(until - ms)) * 1_000) / ms;
  }

  /** Discards everything before a record, except for the state at that record. */
  forget(seq: number): void {
    this.records.forget(seq);
    this.steps.forget(seq);
    this.mail.forget(seq);
    this.troubles.forget(seq);
    // The journal of a run is short, and begins with its script.
    if (!this.aliveAt(LIVE)) this.journal.forget(seq);
    this.standings.forget(seq, 1);
    this.#contexts.forget(seq, 1);
    this.#views.forget(seq, 1);
    this.lives.forget(seq, 1);
    const open = new Set(this.running(LIVE).map(({ id }) => id));
    const oldest = this.timers.until(seq - 1).find(({ id }) => open.has(id));
    this.timers.forget(oldest?.seq ?? seq);
  }

  #stand(next: Standing): boolean {
    const last = this.standings.last;
    // A step record and the state record of the same change follow each other.
    if (last && last.state === next.state && next.edges.length === 0) return false;
    this.standings.add(next);
    return true;
  }
}
