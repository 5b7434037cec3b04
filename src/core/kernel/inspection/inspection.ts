/**
 * The stream of everything that actors do: created, mail, step, state, gone. Without a listener it costs one flag
 * check.
 */

import type { Mail } from '../../messages/mailbox.ts';
import type { Clock } from '../clock.ts';
import type { ActorKind, InspectionListener, InspectionRecord, LiveRecord, NewRecord, Watching } from './records.ts';

/** Returns true if a listener omits the mail that a record causes. */
type Omits = (seq: number) => boolean;

const nothing: Omits = () => false;

/** The inspection of one server. */
export class Inspection {
  /** True while there is a listener. Check it before preparing anything for {@link record}. */
  on = false;
  /**
   * False also while every listener omits what the current turn causes. Mail and wire messages then need no record, and
   * inspection costs as little as without a listener. Records of lifetimes and states are made in any case.
   */
  full = false;
  readonly #clock: Clock;
  readonly #faulty: (error: unknown) => void;
  readonly #behind: () => number;
  /** Each listener with its filter. */
  readonly #listeners = new Map<InspectionListener, Omits>();
  /** Those listeners that only count. */
  readonly #counters = new Set<InspectionListener>();
  readonly #live = new Map<string, { readonly live: LiveRecord; readonly since: number }>();
  /** Ends the observation of each actor that is observed from inside. */
  readonly #watches = new Map<string, Watching>();
  readonly #mailed = new WeakMap<Mail, number>();
  /** Actors whose recorded state may be stale, because their mail was not recorded or they changed without mail. */
  readonly #stale = new Set<LiveRecord>();
  /** The last recorded state of each actor that changed while there was a listener. */
  readonly #states = new Map<string, string>();
  #seq = 0;
  #cause = 0;

  /**
   * @param faulty called with an error that a listener threw
   * @param behind the record that caused the code that now runs outside of a turn, such as a handler that continues
   *   after an `await`; 0 for none
   */
  constructor(clock: Clock, faulty: (error: unknown) => void = () => {}, behind: () => number = () => 0) {
    this.#clock = clock;
    this.#faulty = faulty;
    this.#behind = behind;
  }

  /** The record that is being processed; 0 if there is none. */
  get cause(): number {
    return this.#cause || this.#behind();
  }

  /** The sequence number of the last record. */
  get seq(): number {
    return this.#seq;
  }

  /** A live actor in its current state. */
  live(actor: string): LiveRecord | undefined {
    return this.#live.get(actor)?.live;
  }

  /** The addresses of the live actors of some kinds, the newest last. @param most maximum number: the newest */
  living(kinds: ReadonlySet<ActorKind>, most: number): readonly string[] {
    const found: string[] = [];
    for (const [actor, { live }] of this.#live) {
      if (!kinds.has(live.kind)) continue;
      found.push(actor);
      if (found.length >= 2 * most) found.splice(0, most);
    }
    return found.slice(-most);
  }

  /**
   * Calls the listener with every record until the returned function is called. The first records describe the live
   * actors and their states. A listener that throws is removed.
   *
   * @param omits returns true if the listener omits the mail that a record causes; never called with 0. A listener
   *   that omits mail must call {@link catchUp} from time to time
   */
  listen(listener: InspectionListener, omits: Omits = nothing): () => void {
    const first = this.#listeners.size === 0;
    this.#listeners.set(listener, omits);
    this.on = true;
    this.full = true;
    const living = [...this.#live];
    for (const [actor, { live, since }] of living) {
      for (const record of introductionOf(actor, live, since)) this.#notify(listener, this.#stamp(record));
      this.#states.set(actor, live.state());
    }
    if (first) for (const [actor] of living) this.#watch(actor);
    else
      for (const watching of this.#watches.values())
        for (const record of watching.running()) this.#notify(listener, this.#stamp(record));
    return () => this.#drop(listener);
  }

  /** The same as {@link listen}, for a listener that only counts: it neither shows nor stores a record. */
  count(listener: InspectionListener, omits: Omits): () => void {
    this.#counters.add(listener);
    return this.listen(listener, omits);
  }

  /** True if a listener shows or stores records. */
  get observed(): boolean {
    return this.#listeners.size > this.#counters.size;
  }

  born(actor: string, live: LiveRecord): void {
    const since = this.#clock.now();
    this.#live.set(actor, { live, since });
    if (!this.on) return;
    for (const record of introductionOf(actor, live, since)) this.record(record);
    this.#states.set(actor, live.state());
    this.#watch(actor);
  }

  /** The inside of an actor was replaced: restarts its observation. */
  renewed(actor: string): void {
    if (this.on) this.#watch(actor);
  }

  gone(actor: string, why: string): void {
    this.#unwatch(actor);
    this.#live.delete(actor);
    this.#states.delete(actor);
    if (this.on) this.record({ type: 'gone', actor, why });
  }

  /** Records the state of an actor if it differs from the last recorded state. */
  stated(actor: string, state: string): void {
    if (!this.on || this.#states.get(actor) === state) return;
    this.#states.set(actor, state);
    this.record({ type: 'state', actor, state });
  }

  /** Records mail on its way. Records of its processing have this record as their cause. */
  mailed(actor: string, mail: Mail, fate?: 'queued' | 'dropped'): void {
    this.#mailed.set(mail, this.record({ type: 'mail', actor, mail, fate }));
  }

  /** Runs `body` with the record of `mail` as the cause of everything that it records. */
  during<T>(mail: Mail, body: () => T): T {
    return this.withCause(this.#mailed.get(mail) ?? 0, body);
  }

  /** Runs `body` with the given record as its cause. */
  withCause<T>(cause: number, body: () => T): T {
    const before = this.#cause;
    this.#enter(cause);
    try {
      return body();
    } finally {
      this.#enter(before);
    }
  }

  #enter(cause: number): void {
    this.#cause = cause;
    this.full = false;
    for (const omits of this.#listeners.values()) if (!omits(cause)) this.full = true;
  }

  /** Notes that the recorded state of an actor may be stale: {@link catchUp} records the current one. */
  markStale(actor: LiveRecord): void {
    this.#stale.add(actor);
  }

  /** Records the current states of all actors whose recorded state may be stale. */
  catchUp(): void {
    for (const actor of this.#stale) {
      this.#stale.delete(actor);
      actor.reportState?.();
    }
  }

  /** Passes a record to every listener. @returns the record's sequence number */
  record(record: NewRecord): number {
    const stamped = this.#stamp(record);
    for (const listener of this.#listeners.keys()) this.#notify(listener, stamped);
    return stamped.seq;
  }

  #stamp(record: NewRecord): InspectionRecord {
    this.#seq += 1;
    // Assigns in place: a copy of records of so many shapes would take most of the time of an observation.
    return Object.assign(record, { seq: this.#seq, at: this.#clock.now(), cause: this.cause });
  }

  #notify(listener: InspectionListener, record: InspectionRecord): void {
    if (!this.#listeners.has(listener)) return;
    try {
      listener(record);
    } catch (error) {
      // An observer must never harm the actor that it observes: remove a listener that throws.
      this.#drop(listener);
      this.#faulty(error);
    }
  }

  #watch(actor: string): void {
    this.#unwatch(actor);
    try {
      const watching = this.#live.get(actor)?.live.watch?.();
      if (watching) this.#watches.set(actor, watching);
    } catch (error) {
      this.#faulty(error);
    }
  }

  #unwatch(actor: string): void {
    const watching = this.#watches.get(actor);
    this.#watches.delete(actor);
    watching?.end();
  }

  #drop(listener: InspectionListener): void {
    this.#listeners.delete(listener);
    this.#counters.delete(listener);
    this.on = this.#listeners.size > 0;
    this.full = this.on;
    if (this.on) return;
    this.#stale.clear();
    for (const actor of [...this.#watches.keys()]) this.#unwatch(actor);
    this.#states.clear();
  }
}

function introductionOf(actor: string, live: LiveRecord, since: number): readonly NewRecord[] {
  const { kind, parent, connection, label } = live;
  return [
    { type: 'created', actor, kind, parent, connection, label, machine: live.chart?.()?.machine, since },
    { type: 'state', actor, state: live.state() },
  ];
}
