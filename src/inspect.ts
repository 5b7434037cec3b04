/** One stream of what every actor does: created, mail, state, gone. Costs one test of a flag while nobody listens. */
import type { Clock } from './clock.ts';
import type { Mail } from './messages/mailbox.ts';

export type ActorKind =
  | 'server'
  | 'session'
  | 'requests'
  | 'registry'
  | 'executor'
  | 'emitter'
  | 'request'
  | 'machine'
  | 'handle'
  | 'subscriptions'
  | 'task';

/** What the stream tells of each record: its place, its time in milliseconds of the server's clock, and the record that caused it (0: none known). */
interface Told {
  readonly seq: number;
  readonly at: number;
  readonly cause: number;
}

export type InspectionRecord = Told &
  (
    | { readonly type: 'created'; readonly actor: string; readonly kind: ActorKind }
    | { readonly type: 'mail'; readonly actor: string; readonly mail: Mail }
    | { readonly type: 'state'; readonly actor: string; readonly state: string }
    | {
        readonly type: 'crashed';
        readonly actor: string;
        readonly mail: string;
        readonly error: unknown;
        readonly setAside: boolean;
      }
    | { readonly type: 'gone'; readonly actor: string; readonly why: string }
    /** A message crossed the wire: text only, never parsed here. */
    | { readonly type: 'wire'; readonly connection: string; readonly direction: 'in' | 'out'; readonly text: string }
  );

export type InspectionListener = (record: InspectionRecord) => void;

type Untold<R> = R extends Told ? Omit<R, keyof Told> : never;

interface Live {
  readonly kind: ActorKind;
  state(): string;
}

/** The inspection of one server. */
export class Inspection {
  /** True while somebody listens. Read it before preparing anything for {@link record}. */
  on = false;
  readonly #clock: Clock;
  readonly #faulty: (error: unknown) => void;
  readonly #listeners = new Set<InspectionListener>();
  readonly #live = new Map<string, Live>();
  readonly #mailed = new WeakMap<Mail, number>();
  #seq = 0;
  #cause = 0;

  /** @param faulty hears what a listener threw */
  constructor(clock: Clock, faulty: (error: unknown) => void = () => {}) {
    this.#clock = clock;
    this.#faulty = faulty;
  }

  /** The record that is being acted on now; 0 outside of any. */
  get cause(): number {
    return this.#cause;
  }

  /** Hears every record until the returned function is called; first, what lives already, and its state. A listener that throws is dropped. */
  listen(listener: InspectionListener): () => void {
    this.#listeners.add(listener);
    this.on = true;
    for (const [actor, { kind, state }] of this.#live) {
      for (const record of [
        { type: 'created', actor, kind },
        { type: 'state', actor, state: state() },
      ] as const)
        this.#tell(listener, this.#told(record));
    }
    return () => this.#drop(listener);
  }

  born(actor: string, live: Live): void {
    this.#live.set(actor, live);
    if (!this.on) return;
    this.record({ type: 'created', actor, kind: live.kind });
    this.record({ type: 'state', actor, state: live.state() });
  }

  gone(actor: string, why: string): void {
    this.#live.delete(actor);
    if (this.on) this.record({ type: 'gone', actor, why });
  }

  /** Notes mail on its way; what the receiver does with it names this record as its cause. */
  mailed(actor: string, mail: Mail): void {
    this.#mailed.set(mail, this.record({ type: 'mail', actor, mail }));
  }

  /** Runs `body` with the record of `mail` as the cause of whatever it records. */
  during<T>(mail: Mail, body: () => T): T {
    return this.because(this.#mailed.get(mail) ?? 0, body);
  }

  /** Runs `body` with the given record as cause. */
  because<T>(cause: number, body: () => T): T {
    const before = this.#cause;
    this.#cause = cause;
    try {
      return body();
    } finally {
      this.#cause = before;
    }
  }

  /** Tells every listener. @returns the record's place in the stream */
  record(record: Untold<InspectionRecord>): number {
    const told = this.#told(record);
    for (const listener of this.#listeners) this.#tell(listener, told);
    return told.seq;
  }

  #told(record: Untold<InspectionRecord>): InspectionRecord {
    this.#seq += 1;
    return { ...record, seq: this.#seq, at: this.#clock.now(), cause: this.#cause };
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

  #drop(listener: InspectionListener): void {
    this.#listeners.delete(listener);
    this.on = this.#listeners.size > 0;
  }
}
