/** One viewer: what it is told, in order, as fast as it reads. What it is too slow for is told as a gap; nothing is kept for it alone. */
import type { ChartFrame, GapFrame, HelloFrame, TraceRecord } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Observation, Watcher } from './observation.ts';

/** Where frames go. */
export interface Sink {
  /** Takes one frame. @returns false when the next shall wait for {@link Viewer.drained} */
  write(frame: string | Uint8Array): boolean;
  /** Nothing more comes. */
  end(): void;
}

export interface ViewerOptions {
  readonly observation: Observation;
  readonly sink: Sink;
  hello(): HelloFrame;
  /** The last record that it knows already. */
  readonly since?: number;
  /** It is told what the statecharts of all actors hold. */
  readonly everything?: boolean;
}

/** Most actors that one viewer looks at. */
export const MAX_FOCUS = 8;
/** Records of one frame, where they are put together for one viewer. */
const CHUNK = 200;

export class Viewer implements Watcher {
  readonly everything: boolean;
  focus: ReadonlySet<string> = new Set();
  readonly #options: ViewerOptions;
  readonly #leave: () => void;
  /** What comes before the rest of the backlog: each frame is made when it is its turn. */
  #first: Iterator<string>;
  /** The number of the next frame of the backlog. */
  #next = 0;
  /** What it was told of, in all and until where. */
  #seen: { last: number; records: number; exchanges: number };
  readonly #looks = new Map<string, string>();
  #waits = false;
  #ended = false;
  /** It is writing: what is told meanwhile follows. */
  #writing = false;

  constructor(options: ViewerOptions) {
    this.#options = options;
    this.everything = options.everything ?? false;
    this.#seen = { last: options.since ?? 0, records: 0, exchanges: 0 };
    this.#first = this.#introduction();
    this.#leave = options.observation.watch(this);
    this.told();
  }

  /** It waits until its sink takes more. */
  get waits(): boolean {
    return this.#waits;
  }

  /** Looks at these actors from now on, and no others. */
  look(actors: readonly string[]): void {
    this.focus = new Set(actors.slice(0, MAX_FOCUS));
    for (const actor of this.#looks.keys()) if (!this.focus.has(actor)) this.#looks.delete(actor);
    this.#options.observation.focused(this);
    this.told();
  }

  looks(actor: string, text: string): void {
    this.#looks.set(actor, text);
  }

  told(): void {
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
    this.told();
  }

  /** The server stops: says so, and ends. */
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
      const { records, exchanges } = backlog.at(this.#next) ?? backlog.told;
      this.#seen = { last: entry.last, records, exchanges };
      return entry.text;
    }
    for (const [actor, text] of this.#looks) {
      this.#looks.delete(actor);
      return text;
    }
    return undefined;
  }

  *#introduction(): Generator<string, void> {
    const { hello, observation } = this.#options;
    yield jsonTextOf(hello());
    yield* chartsOf(observation.charts);
    // A place that was never told is that of another process.
    if (this.#seen.last > observation.backlog.last) this.#seen = { last: 0, records: 0, exchanges: 0 };
    yield* this.#missed('forgotten');
  }

  /** What makes up for the frames that it can no longer be told: a gap, and who lives. */
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
