/**
 * Writes frames to one viewer, in order and as fast as it reads. A slow viewer receives a gap: it has no buffer of its
 * own.
 */
import type { ChartFrame, GapFrame, HelloFrame, TraceRecord } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Observation } from './observation.ts';
import type { Watcher } from './watcher.ts';

/** The destination of frames. */
export interface Sink {
  /** Takes one frame. @returns false if the next frame must wait for {@link Viewer.drained} */
  write(frame: string | Uint8Array): boolean;
  /** No more frames follow. */
  end(): void;
}

interface ViewerOptions {
  readonly observation: Observation;
  readonly sink: Sink;
  hello(): HelloFrame;
  /** The last record that the viewer already has. */
  readonly since?: number;
  /** True: every step has its context. */
  readonly everything?: boolean;
}

/** Maximum number of actors in a viewer's focus. */
const MAX_FOCUS = 8;
/** Number of records of a frame that is built for one viewer. */
const CHUNK = 200;

export class Viewer implements Watcher {
  readonly everything: boolean;
  focus: ReadonlySet<string> = new Set();
  readonly #options: ViewerOptions;
  readonly #leave: () => void;
  /** Frames before the rest of the backlog. Each is built when it is its turn. */
  #first: Iterator<string>;
  /** The number of the next frame of the backlog. */
  #next = 0;
  /** The last record that was written, and the totals up to it. */
  #seen: { last: number; records: number; exchanges: number };
  readonly #views = new Map<string, string>();
  #waits = false;
  #ended = false;
  /** True during a write: frames that arrive meanwhile follow. */
  #writing = false;

  constructor(options: ViewerOptions) {
    this.#options = options;
    this.everything = options.everything ?? false;
    this.#seen = { last: options.since ?? 0, records: 0, exchanges: 0 };
    this.#first = this.#introduction();
    this.#leave = options.observation.watch(this);
    this.deliver();
  }

  /** True until the sink accepts more frames. */
  get waits(): boolean {
    return this.#waits;
  }

  /** Replaces the focus. */
  focusOn(actors: readonly string[]): void {
    this.focus = new Set(actors.slice(0, MAX_FOCUS));
    for (const actor of this.#views.keys()) if (!this.focus.has(actor)) this.#views.delete(actor);
    this.#options.observation.focused(this);
    this.deliver();
  }

  viewChanged(actor: string, text: string): void {
    this.#views.set(actor, text);
  }

  deliver(): void {
    if (this.#writing) return;
    this.#writing = true;
    while (!this.#waits && !this.#ended) {
      const frame = this.#frame();
      if (frame === undefined) break;
      this.#waits = !this.#options.sink.write(frame);
    }
    this.#writing = false;
  }

  drained(): void {
    this.#waits = false;
    this.deliver();
  }

  /** The server stops: writes a `bye` frame and ends. */
  bye(why: string): void {
    if (!this.#ended) this.#options.sink.write(jsonTextOf({ type: 'bye', why }));
    this.end();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#leave();
    this.#options.sink.end();
  }

  #frame(): string | Uint8Array | undefined {
    const first = this.#first.next();
    if (!first.done) return first.value;
    const { backlog } = this.#options.observation;
    if (this.#next < backlog.first) {
      this.#first = this.#missed('lagging');
      return this.#frame();
    }
    const entry = backlog.at(this.#next);
    if (entry) {
      this.#next += 1;
      const { records, exchanges } = backlog.at(this.#next) ?? backlog.totals;
      this.#seen = { last: entry.last, records, exchanges };
      return entry.text;
    }
    for (const [actor, text] of this.#views) {
      this.#views.delete(actor);
      return text;
    }
    return undefined;
  }

  *#introduction(): Generator<string, void> {
    const { hello, observation } = this.#options;
    yield jsonTextOf(hello());
    yield* chartsOf(observation.charts);
    // A sequence number beyond the backlog comes from another process.
    if (this.#seen.last > observation.backlog.last) this.#seen = { last: 0, records: 0, exchanges: 0 };
    yield* this.#missed('forgotten');
  }

  /** Replaces the frames that are no longer stored: a gap, and the baseline. */
  *#missed(why: GapFrame['why']): Generator<string, void> {
    const { backlog } = this.#options.observation;
    const { lost } = backlog;
    const { last } = this.#seen;
    const tree = last < lost.last ? backlog.base.records(last) : [];
    this.#next = backlog.after(Math.max(last, lost.last));
    if (last >= lost.last) return;
    const missing = Math.min(lost.records - this.#seen.records, lost.last - last) - tree.length;
    if (missing > 0)
      yield jsonTextOf({
        ...{ type: 'gap', from: last + 1, to: lost.last, at: lost.at, why },
        records: missing,
        exchanges: Math.max(0, Math.min(lost.exchanges - this.#seen.exchanges, missing)),
      });
    this.#seen = { last: lost.last, records: lost.records, exchanges: lost.exchanges };
    for (let at = 0; at < tree.length; at += CHUNK) yield recordsText(tree.slice(at, at + CHUNK));
  }
}

function* chartsOf(charts: readonly ChartFrame[]): Generator<string, void> {
  for (const chart of charts) yield jsonTextOf(chart);
}

function recordsText(records: readonly TraceRecord[]): string {
  return jsonTextOf({ type: 'records', records });
}
