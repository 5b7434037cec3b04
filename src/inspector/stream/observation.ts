/** Observes a server while somebody watches: hears its records, and tells them a little later, many at once, within bounds of time and memory. */
import type { Clock, Timer } from '../../clock.ts';
import type { Inspection } from '../../inspection/inspection.ts';
import type { InspectionRecord } from '../../inspection/records.ts';
import type { ChartFrame, Look, TraceRecord, WhatIf } from '../frames.ts';
import type { AnyEvent } from '../http/viewer-input.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Redactor } from '../redaction/redact.ts';
import { lookAt } from '../views/actor-view.ts';
import { ActorViews } from '../views/actor-views.ts';
import { whatIf } from '../views/what-if.ts';
import { Backlog } from './backlog.ts';
import { FrameEncoder } from './frame-encoder.ts';
import { RecordSampler } from './record-sampler.ts';

/** Who is told. */
export interface Watcher {
  /** The actors that are looked at: their looks are told whenever they change, and what their statecharts hold with each step. */
  readonly focus: ReadonlySet<string>;
  /** What the statecharts of all actors hold is told. */
  readonly everything: boolean;
  /** There is more in the backlog. */
  told(): void;
  /** An actor of {@link focus} looks like this now. @param text the frame */
  looks(actor: string, text: string): void;
}

export interface ObservationOptions {
  readonly inspection: Inspection;
  readonly clock: Clock;
  readonly redactor: Redactor;
  /** The statecharts that the server offers now: what they hide is hidden also in the messages that create their first instances. */
  machines(): Iterable<object>;
  /** Hears what is wrong with the observation itself: the server goes on. */
  failed?(error: unknown): void;
  /** Records that may wait before exchanges are left out. Default: as many as can be told in the time for it, as measured. */
  readonly capacity?: number;
  /** Bytes of frames that are kept. */
  readonly maxBytes?: number;
}

/** Milliseconds for which records are gathered: two frames of a screen. */
export const FLUSH_MS = 33;
/** Milliseconds of them that telling may take. The rest is the server's. */
const BUDGET_MS = 5;
/** Milliseconds for which a server is observed on when the last viewer has gone: a page that reloads is back by then. */
export const LINGER_MS = 5_000;
/** Most flushes, one behind the other, to tell everything that waits. */
const MAX_ROUNDS = 1_000;
/** Most records and characters of one frame. */
const MAX_RECORDS = 250;
const MAX_LENGTH = 256 * 1024;
/** Records that wait: at least what a few dozen calls at once lead to, also where the machine is busy with other things. */
const CAPACITY = { least: 512, first: 1_000, most: 4_000 };
/** Milliseconds after which another exchange is told, whatever waits: two for each flush, unless telling them takes more than its time. */
const SAMPLE_MS = FLUSH_MS / 2;
/** Records that an exchange leads to, about. */
const RECORDS_EACH = 10;
/** Records that are told before it is known what one takes: the first take many times as long. */
const WARM = 2_000;

export class Observation {
  readonly backlog: Backlog;
  readonly #options: ObservationOptions;
  readonly #intake: RecordSampler;
  readonly #teller: FrameEncoder;
  readonly #watchers = new Set<Watcher>();
  readonly #looks: ActorViews;
  #stop: (() => void) | undefined;
  #flush: Timer | undefined;
  #linger: Timer | undefined;
  /** Milliseconds that telling one record takes, of late. */
  #cost = 0;
  #measured = 0;

  constructor(options: ObservationOptions) {
    this.#options = options;
    this.backlog = new Backlog(options.maxBytes);
    this.#looks = new ActorViews({
      clock: options.clock,
      watchers: () => this.#watchers,
      look: (actor) => this.look(actor),
      guarded: (run) => this.#guarded(run),
    });
    this.#intake = new RecordSampler(options.capacity ?? CAPACITY.first, SAMPLE_MS);
    this.#teller = new FrameEncoder({
      redactor: options.redactor,
      wants: (actor) => this.#wants(actor),
      chart: (frame) => this.backlog.addChart(frame),
    });
  }

  /** Whether the server is observed now. */
  get attached(): boolean {
    return this.#stop !== undefined;
  }

  /** Every chart that was told of. */
  get charts(): readonly ChartFrame[] {
    return this.#teller.charts;
  }

  /** Tells from now on, until the returned function is called. What there is already is in {@link backlog}. */
  watch(watcher: Watcher): () => void {
    this.#linger?.cancel();
    this.#linger = undefined;
    this.#watchers.add(watcher);
    if (!this.#stop) this.#attach();
    return () => {
      if (!this.#watchers.delete(watcher) || this.#watchers.size > 0) return;
      this.#linger = this.#options.clock.after(LINGER_MS, () => this.#detach());
    };
  }

  /** Looks at an actor; undefined if none of that address lives. */
  look(actor: string): Look | undefined {
    const { inspection, clock } = this.#options;
    const live = inspection.live(actor);
    if (!live) return undefined;
    this.#learn();
    return lookAt(actor, live, { seq: inspection.seq, at: clock.now(), redactor: this.#options.redactor });
  }

  /** What an event would lead to; undefined if no actor of that address lives, or it has no statechart. */
  whatIf(actor: string, event: AnyEvent): WhatIf | undefined {
    const charted = this.#options.inspection.live(actor)?.chart?.();
    if (!charted) return undefined;
    this.#learn();
    const found = whatIf(charted, event, (context) => this.#teller.context(context));
    // It may have the words of an error that an author's code threw.
    return found.why === undefined ? found : { ...found, why: this.#options.redactor.words(found.why) };
  }

  /** A watcher looks at others now: it is told how they look. */
  focused(watcher: Watcher): void {
    this.#guarded(() => this.#looks.focused(watcher));
  }

  /** Tells what waits, as far as the time for it goes. Never throws. */
  flush(): void {
    this.#flush?.cancel();
    this.#flush = undefined;
    this.#guarded(() => this.#flushOnce());
    if (this.#intake.size > 0) this.#soon();
  }

  /** Tells everything that waits, however long it takes: before a recording ends. */
  flushAll(): void {
    // What cannot be told for a fault of ours is not tried for ever.
    for (let round = 0; round === 0 || (this.#intake.size > 0 && round < MAX_ROUNDS); round += 1) this.flush();
  }

  #flushOnce(): void {
    const { clock, inspection } = this.#options;
    this.#learn();
    inspection.catchUp();
    const records = this.#intake.take();
    const begin = clock.now();
    const count = this.#tell(records, begin);
    if (count < records.length) this.#intake.putBack(records.slice(count));
    const gap = this.#intake.gap();
    if (gap) this.backlog.addGap(gap);
    this.#learnCost(clock.now() - begin, count);
    this.#looks.tell();
    for (const watcher of this.#watchers) watcher.told();
  }

  /** What the statecharts of the server hide. */
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

  /** Ends it: nobody is told any more. */
  close(): void {
    this.#linger?.cancel();
    this.#watchers.clear();
    this.#detach();
  }

  #attach(): void {
    // What is known from before may have changed in between.
    this.backlog.clear();
    this.#stop = this.#options.inspection.listen(this.#hear, this.#leavesOut);
    this.flush();
  }

  #detach(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#flush?.cancel();
    this.#flush = undefined;
    this.#intake.take();
    this.#intake.gap();
    this.backlog.clear();
    this.#looks.end();
  }

  readonly #hear = (record: InspectionRecord): void => {
    this.#intake.hear(record);
    if (!this.#flush) this.#soon();
  };

  readonly #leavesOut = (seq: number): boolean => {
    const out = this.#intake.leavesOut(seq);
    // What happens now is not told, but the states that it leads to are.
    if (out && !this.#flush) this.#soon();
    return out;
  };

  #soon(): void {
    this.#flush ??= this.#options.clock.after(FLUSH_MS, () => this.flush());
  }

  /** @returns how many of them were told in time */
  #tell(records: readonly InspectionRecord[], begin: number): number {
    const { clock } = this.#options;
    let told: TraceRecord[] = [];
    let texts: string[] = [];
    let length = 0;
    let count = 0;
    const done = (): void => {
      this.backlog.addRecords(told, texts);
      told = [];
      texts = [];
      length = 0;
    };
    for (const record of records) {
      count += 1;
      const one = this.#toldOf(record);
      if (one) {
        const { told: whole, text } = one;
        told.push(whole);
        texts.push(text);
        length += text.length;
        if ('actor' in whole) this.#looks.touched(whole.actor);
      }
      if (told.length >= MAX_RECORDS || length >= MAX_LENGTH) done();
      if (count % 8 === 0 && clock.now() - begin > BUDGET_MS) break;
    }
    done();
    return count;
  }

  /** What cannot be told is left out, and that is told. */
  #toldOf(record: InspectionRecord): { readonly told: TraceRecord; readonly text: string } | undefined {
    try {
      const told = this.#teller.told(record);
      return { told, text: jsonTextOf(told) };
    } catch {
      this.#intake.leave(record);
      return undefined;
    }
  }

  #learnCost(took: number, count: number): void {
    if (this.#options.capacity !== undefined || count < 16 || took <= 0) return;
    const each = took / count;
    this.#cost = this.#cost === 0 ? each : this.#cost * 0.8 + each * 0.2;
    this.#intake.capacity = Math.min(CAPACITY.most, Math.max(CAPACITY.least, Math.floor(BUDGET_MS / this.#cost)));
    this.#measured += count;
    if (this.#measured < WARM) return;
    this.#intake.every = Math.max(SAMPLE_MS, (FLUSH_MS / BUDGET_MS) * RECORDS_EACH * this.#cost);
  }

  #wants(actor: string): boolean {
    for (const { everything, focus } of this.#watchers) if (everything || focus.has(actor)) return true;
    return false;
  }
}
