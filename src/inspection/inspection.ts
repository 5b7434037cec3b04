/** One stream of what every actor does: created, mail, step, state, gone. Costs one test of a flag while nobody listens. */
import type { Clock } from '../clock.ts';
import type { Mail } from '../messages/mailbox.ts';
import type { InspectionListener, InspectionRecord, LiveRecord, Untold } from './records.ts';

/** Whether a listener does without the mail that a record leads to. */
type LeavesOut = (seq: number) => boolean;

const nothing: LeavesOut = () => false;

/** The inspection of one server. */
export class Inspection {
  /** True while somebody listens. Read it before preparing anything for {@link record}. */
  on = false;
  /**
   * False also while everything is left out that what happens now leads to: mail and messages on the wire need not be recorded,
   * and it costs what it costs while nobody listens. What shows who lives, and in which state, is recorded all the same.
   */
  full = false;
  readonly #clock: Clock;
  readonly #faulty: (error: unknown) => void;
  readonly #behind: () => number;
  /** Each, with what it says of the mail that a record leads to. */
  readonly #listeners = new Map<InspectionListener, LeavesOut>();
  readonly #live = new Map<string, LiveRecord>();
  /** Ends the watching of each that is watched from within. */
  readonly #watches = new Map<string, () => void>();
  readonly #mailed = new WeakMap<Mail, number>();
  /** Actors that may be in another state than was told, because of mail that was not recorded, or of none. */
  readonly #passed = new Set<LiveRecord>();
  /** As it was told last, of those that change while somebody listens. */
  readonly #states = new Map<string, string>();
  #seq = 0;
  #cause = 0;

  /**
   * @param faulty hears what a listener threw
   * @param behind the record behind what runs now outside of any turn, such as a handler that goes on after an `await`; 0 for none
   */
  constructor(clock: Clock, faulty: (error: unknown) => void = () => {}, behind: () => number = () => 0) {
    this.#clock = clock;
    this.#faulty = faulty;
    this.#behind = behind;
  }

  /** The record that is being acted on now; 0 outside of any. */
  get cause(): number {
    return this.#cause || this.#behind();
  }

  /** The place of the last record. */
  get seq(): number {
    return this.#seq;
  }

  /** An actor that lives, as it is now. */
  live(actor: string): LiveRecord | undefined {
    return this.#live.get(actor);
  }

  /**
   * Hears every record until the returned function is called; first, what lives already, and its state. A listener that throws
   * is dropped.
   *
   * @param leavesOut whether the listener does without the mail that a record leads to; never of 0. Whoever says so is to call
   *   {@link catchUp} from time to time
   */
  listen(listener: InspectionListener, leavesOut: LeavesOut = nothing): () => void {
    const first = this.#listeners.size === 0;
    this.#listeners.set(listener, leavesOut);
    this.on = true;
    this.full = true;
    const living = [...this.#live];
    for (const [actor, live] of living) {
      for (const record of introductionOf(actor, live)) this.#tell(listener, this.#told(record));
      this.#states.set(actor, live.state());
    }
    if (first) for (const [actor] of living) this.#watch(actor);
    return () => this.#drop(listener);
  }

  born(actor: string, live: LiveRecord): void {
    this.#live.set(actor, live);
    if (!this.on) return;
    for (const record of introductionOf(actor, live)) this.record(record);
    this.#states.set(actor, live.state());
    this.#watch(actor);
  }

  /** It has become another inside: what is watched of it from within is watched anew. */
  renewed(actor: string): void {
    if (this.on) this.#watch(actor);
  }

  gone(actor: string, why: string): void {
    this.#unwatch(actor);
    this.#live.delete(actor);
    this.#states.delete(actor);
    if (this.on) this.record({ type: 'gone', actor, why });
  }

  /** Tells the state of an actor, if it is another than was told last. */
  stated(actor: string, state: string): void {
    if (!this.on || this.#states.get(actor) === state) return;
    this.#states.set(actor, state);
    this.record({ type: 'state', actor, state });
  }

  /** Notes mail on its way; what the receiver does with it names this record as its cause. */
  mailed(actor: string, mail: Mail, fate?: 'queued' | 'dropped'): void {
    this.#mailed.set(mail, this.record({ type: 'mail', actor, mail, fate }));
  }

  /** Runs `body` with the record of `mail` as the cause of whatever it records. */
  during<T>(mail: Mail, body: () => T): T {
    return this.because(this.#mailed.get(mail) ?? 0, body);
  }

  /** Runs `body` with the given record as cause. */
  because<T>(cause: number, body: () => T): T {
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
    for (const leavesOut of this.#listeners.values()) if (!leavesOut(cause)) this.full = true;
  }

  /** An actor may be in another state than was told: {@link catchUp} tells it. */
  passed(actor: LiveRecord): void {
    this.#passed.add(actor);
  }

  /** Tells the states of those that may be in another than was told. */
  catchUp(): void {
    for (const actor of this.#passed) {
      this.#passed.delete(actor);
      actor.tellState?.();
    }
  }

  /** Tells every listener. @returns the record's place in the stream */
  record(record: Untold): number {
    const told = this.#told(record);
    for (const listener of this.#listeners.keys()) this.#tell(listener, told);
    return told.seq;
  }

  #told(record: Untold): InspectionRecord {
    this.#seq += 1;
    // A copy of so many shapes would take most of the time that watching takes.
    return Object.assign(record, { seq: this.#seq, at: this.#clock.now(), cause: this.cause });
  }

  #tell(listener: InspectionListener, record: InspectionRecord): void {
    if (!this.#listeners.has(listener)) return;
    try {
      listener(record);
    } catch (error) {
      // An observer must never harm what it observes: one that throws hears no more.
      this.#drop(listener);
      this.#faulty(error);
    }
  }

  #watch(actor: string): void {
    this.#unwatch(actor);
    try {
      const end = this.#live.get(actor)?.watch?.();
      if (end) this.#watches.set(actor, end);
    } catch (error) {
      this.#faulty(error);
    }
  }

  #unwatch(actor: string): void {
    const end = this.#watches.get(actor);
    this.#watches.delete(actor);
    end?.();
  }

  #drop(listener: InspectionListener): void {
    this.#listeners.delete(listener);
    this.on = this.#listeners.size > 0;
    this.full = this.on;
    if (this.on) return;
    this.#passed.clear();
    for (const actor of [...this.#watches.keys()]) this.#unwatch(actor);
    this.#states.clear();
  }
}

function introductionOf(actor: string, live: LiveRecord): readonly Untold[] {
  const { kind, parent, connection, label } = live;
  return [
    { type: 'created', actor, kind, parent, connection, label, machine: live.chart?.()?.machine },
    { type: 'state', actor, state: live.state() },
  ];
}
