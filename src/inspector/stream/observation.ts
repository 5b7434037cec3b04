/**
 * Observes a server while it has viewers: collects records and passes them on in batches, within bounds of time and
 * memory.
 */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { Inspection } from '../../core/kernel/inspection/inspection.ts';
import type { InspectionRecord } from '../../core/kernel/inspection/records.ts';
import type { ActorView, ChartFrame, TraceRecord, WhatIf } from '../frames.ts';
import type { AnyEvent } from '../http/viewer-input.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Redactor } from '../redaction/redact.ts';
import { viewActor } from '../views/actor-view.ts';
import { ActorViews, WAITING_KINDS } from '../views/actor-views.ts';
import { whatIf } from '../views/what-if.ts';
import { Backlog } from './backlog.ts';
import { FrameEncoder } from './frame-encoder.ts';
import { RecordSampler } from './record-sampler.ts';
import type { Watcher } from './watcher.ts';

export interface ObservationOptions {
  readonly inspection: Inspection;
  readonly clock: Clock;
  readonly redactor: Redactor;
  /**
   * The statecharts that the server offers now. Their declared secrets are also hidden in the messages that create
   * their first instances.
   */
  machines(): Iterable<object>;
  /** Called with faults of the observation itself. The server continues. */
  failed?(error: unknown): void;
  /**
   * Number of records that may wait before exchanges are omitted. Default: as many as fit into the time budget, as
   * measured.
   */
  readonly capacity?: number;
  /** Maximum number of bytes of stored frames. */
  readonly maxBytes?: number;
}

/** Interval of flushes in milliseconds: two frames of a screen. */
export const FLUSH_MS = 33;
/** Milliseconds of each interval that encoding may take. The rest belongs to the server. */
const BUDGET_MS = 5;
/** Milliseconds for which the observation continues without a viewer. A page that reloads is back by then. */
export const LINGER_MS = 5_000;
/** Maximum number of consecutive flushes to pass on everything that waits. */
const MAX_ROUNDS = 1_000;
/** Maximum number of records and characters of one frame. */
const MAX_RECORDS = 250;
const MAX_LENGTH = 256 * 1024;
/**
 * Bounds for the number of waiting records. The least is enough for a few dozen calls at once, also on a busy machine.
 */
const CAPACITY = { least: 512, first: 1_000, most: 4_000 };
/**
 * Milliseconds after which one more exchange is recorded in a flood: two for each flush, unless encoding them exceeds
 * the budget.
 */
const SAMPLE_MS = FLUSH_MS / 2;
/** Typical number of records of an exchange. */
const RECORDS_EACH = 10;
/** Number of records before the measured cost is used: the first records take many times as long. */
const WARM = 2_000;

export class Observation {
  readonly backlog: Backlog;
  readonly #options: ObservationOptions;
  readonly #sampler: RecordSampler;
  readonly #encoder: FrameEncoder;
  readonly #watchers = new Set<Watcher>();
  readonly #views: ActorViews;
  #stop: (() => void) | undefined;
  #flush: Timer | undefined;
  #linger: Timer | undefined;
  /** Average cost of encoding a record, in milliseconds. */
  #cost = 0;
  #measured = 0;

  constructor(options: ObservationOptions) {
    this.#options = options;
    this.backlog = new Backlog(options.maxBytes);
    this.#views = new ActorViews({
      clock: options.clock,
      watchers: () => this.#watchers,
      view: (actor) => this.view(actor),
      brief: (actor) => this.#brief(actor),
      living: (kinds, most) => options.inspection.living(kinds, most),
      guarded: (run) => this.#guarded(run),
    });
    this.#sampler = new RecordSampler(options.capacity ?? CAPACITY.first, SAMPLE_MS);
    this.#encoder = new FrameEncoder({
      redactor: options.redactor,
      wants: (actor) => this.#wants(actor),
      chart: (frame) => this.backlog.addChart(frame),
    });
  }

  /** True if the server is observed now. */
  get attached(): boolean {
    return this.#stop !== undefined;
  }

  /** Every chart that was encoded. */
  get charts(): readonly ChartFrame[] {
    return this.#encoder.charts;
  }

  /** Notifies a watcher until the returned function is called. Earlier frames are in {@link backlog}. */
  watch(watcher: Watcher): () => void {
    this.#linger?.cancel();
    this.#linger = undefined;
    this.#watchers.add(watcher);
    if (!this.#stop) this.#attach();
    if (watcher.everything) this.#views.recorded();
    return () => {
      if (!this.#watchers.delete(watcher) || this.#watchers.size > 0) return;
      this.#linger = this.#options.clock.after(LINGER_MS, () => this.#detach());
    };
  }

  /** The current view of an actor; undefined if no live actor has that address. */
  view(actor: string): ActorView | undefined {
    this.#learn();
    return this.#viewOf(actor, false);
  }

  #viewOf(actor: string, brief: boolean): ActorView | undefined {
    const { inspection, clock, redactor } = this.#options;
    const live = inspection.live(actor);
    return live && viewActor(actor, live, { seq: inspection.seq, at: clock.now(), redactor, brief });
  }

  /** The view of an actor of a kind that may wait, for recordings. */
  #brief(actor: string): ActorView | undefined {
    const kind = this.#options.inspection.live(actor)?.kind;
    return kind !== undefined && WAITING_KINDS.has(kind) ? this.#viewOf(actor, true) : undefined;
  }

  /** The consequences of an event; undefined if no live actor has that address, or it has no statechart. */
  whatIf(actor: string, event: AnyEvent): WhatIf | undefined {
    const charted = this.#options.inspection.live(actor)?.chart?.();
    if (!charted) return undefined;
    this.#learn();
    const found = whatIf(charted, event, (context) => this.#encoder.context(context));
    // The reason may contain the message of an error that an author's code threw.
    return found.why === undefined ? found : { ...found, why: this.#options.redactor.words(found.why) };
  }

  /** Sends a watcher the views of its new focus. */
  focused(watcher: Watcher): void {
    this.#guarded(() => this.#views.focused(watcher));
  }

  /** Passes on waiting records within the time budget. Never throws. */
  flush(): void {
    this.#flush?.cancel();
    this.#flush = undefined;
    this.#guarded(() => this.#flushOnce());
    if (this.#sampler.size > 0) this.#soon();
  }

  /** Passes on all waiting records, however long it takes: before a recording ends. */
  flushAll(): void {
    // The number of rounds is limited, so that a fault of the observation cannot loop forever.
    for (let round = 0; round === 0 || (this.#sampler.size > 0 && round < MAX_ROUNDS); round += 1) this.flush();
    this.#guarded(() => {
      this.#views.publishWaits();
      for (const watcher of this.#watchers) watcher.deliver();
    });
  }

  #flushOnce(): void {
    const { clock, inspection } = this.#options;
    this.#learn();
    inspection.catchUp();
    const records = this.#sampler.take();
    const begin = clock.now();
    const count = this.#encode(records, begin);
    if (count < records.length) this.#sampler.putBack(records.slice(count));
    const gap = this.#sampler.gap();
    if (gap) this.backlog.addGap(gap);
    this.#learnCost(clock.now() - begin, count);
    this.#views.publish();
    for (const watcher of this.#watchers) watcher.deliver();
  }

  /** Collects the secrets that the server's statecharts declare. */
  #learn(): void {
    for (const machine of this.#options.machines()) this.#options.redactor.learn(machine);
  }

  /** An observer must never harm what it observes. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.failed?.(error);
    }
  }

  /** Ends the observation and removes all watchers. */
  close(): void {
    this.#linger?.cancel();
    this.#watchers.clear();
    this.#detach();
  }

  #attach(): void {
    // Earlier records may be outdated: the server was not observed in between.
    this.backlog.clear();
    this.#stop = this.#options.inspection.listen(this.#add, this.#omits);
    this.flush();
  }

  #detach(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#flush?.cancel();
    this.#flush = undefined;
    this.#sampler.take();
    this.#sampler.gap();
    this.backlog.clear();
    this.#views.end();
  }

  readonly #add = (record: InspectionRecord): void => {
    this.#sampler.add(record);
    if (!this.#flush) this.#soon();
  };

  readonly #omits = (seq: number): boolean => {
    const out = this.#sampler.omits(seq);
    // The records of this turn are omitted, but the resulting states are recorded.
    if (out && !this.#flush) this.#soon();
    return out;
  };

  #soon(): void {
    this.#flush ??= this.#options.clock.after(FLUSH_MS, () => this.flush());
  }

  /** @returns how many records were encoded in time */
  #encode(records: readonly InspectionRecord[], begin: number): number {
    const { clock } = this.#options;
    let encoded: TraceRecord[] = [];
    let texts: string[] = [];
    let length = 0;
    let count = 0;
    const done = (): void => {
      this.backlog.addRecords(encoded, texts);
      encoded = [];
      texts = [];
      length = 0;
    };
    for (const record of records) {
      count += 1;
      const one = this.#encodeOne(record);
      if (one) {
        const { record: whole, text } = one;
        encoded.push(whole);
        texts.push(text);
        length += text.length;
        if ('actor' in whole) this.#views.touched(whole.actor);
      }
      if (encoded.length >= MAX_RECORDS || length >= MAX_LENGTH) done();
      if (count % 8 === 0 && clock.now() - begin > BUDGET_MS) break;
    }
    done();
    return count;
  }

  /** A record that cannot be encoded counts as missing. */
  #encodeOne(record: InspectionRecord): { readonly record: TraceRecord; readonly text: string } | undefined {
    try {
      const encoded = this.#encoder.encode(record);
      return { record: encoded, text: jsonTextOf(encoded) };
    } catch {
      this.#sampler.omit(record);
      return undefined;
    }
  }

  #learnCost(took: number, count: number): void {
    if (this.#options.capacity !== undefined || count < 16 || took <= 0) return;
    const each = took / count;
    this.#cost = this.#cost === 0 ? each : this.#cost * 0.8 + each * 0.2;
    this.#sampler.capacity = Math.min(CAPACITY.most, Math.max(CAPACITY.least, Math.floor(BUDGET_MS / this.#cost)));
    this.#measured += count;
    if (this.#measured < WARM) return;
    this.#sampler.every = Math.max(SAMPLE_MS, (FLUSH_MS / BUDGET_MS) * RECORDS_EACH * this.#cost);
  }

  #wants(actor: string): boolean {
    for (const { everything, focus } of this.#watchers) if (everything || focus.has(actor)) return true;
    return false;
  }
}
