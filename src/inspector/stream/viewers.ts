/** The viewers of one inspector: by their names, bounded in number, each dropped when it reads nothing for long. */
import type { Clock, Timer } from '../../clock.ts';
import type { HelloFrame } from '../frames.ts';
import type { Observation } from './observation.ts';
import { type Sink, Viewer } from './viewer.ts';

export interface StreamSink extends Sink {
  /** Shows that the stream is still open. */
  alive(): void;
}

export interface ViewersOptions {
  readonly observation: Observation;
  readonly clock: Clock;
  readonly max: number;
  hello(): HelloFrame;
}

/** How often a quiet stream shows that it is open. */
const ALIVE_MS = 15_000;
/** How many of these a viewer may read nothing, before it is dropped. */
const MAX_STALLED = 4;
/** Names of viewers that were here before, and for how many it is remembered. */
const MAX_KNOWN = 256;

interface Open {
  readonly viewer: Viewer;
  readonly sink: StreamSink;
  stalled: number;
}

export class Viewers {
  readonly #options: ViewersOptions;
  readonly #open = new Map<string, Open>();
  /** A name that is not known is that of a page which knew another process: what it knows is not ours. */
  readonly #known = new Set<string>();
  #timer: Timer | undefined;

  constructor(options: ViewersOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Whether one more of that name may come. */
  admits(name: string): boolean {
    return this.#open.has(name) || this.#open.size < this.#options.max;
  }

  /** Opens the stream of a viewer, in place of its earlier one. */
  open(name: string, since: number, sink: StreamSink): Viewer {
    this.#open.get(name)?.viewer.end();
    const { observation, hello } = this.#options;
    const viewer = new Viewer({ observation, sink, hello, since: this.#known.has(name) ? since : 0 });
    this.#open.set(name, { viewer, sink, stalled: 0 });
    this.#known.add(name);
    if (this.#known.size > MAX_KNOWN) for (const oldest of this.#known) if (this.#known.delete(oldest)) break;
    this.#watch();
    return viewer;
  }

  /** The stream of a viewer is gone. */
  gone(name: string, viewer: Viewer): void {
    viewer.end();
    if (this.#open.get(name)?.viewer === viewer) this.#open.delete(name);
  }

  /** @returns false where no such viewer is there */
  look(name: string, actors: readonly string[]): boolean {
    const open = this.#open.get(name);
    open?.viewer.look(actors);
    return open !== undefined;
  }

  close(why: string): void {
    this.#timer?.cancel();
    for (const { viewer } of this.#open.values()) viewer.bye(why);
    this.#open.clear();
  }

  #watch(): void {
    this.#timer ??= this.#options.clock.after(ALIVE_MS, () => {
      this.#timer = undefined;
      for (const [name, open] of this.#open) {
        if (!open.viewer.waits) {
          open.stalled = 0;
          open.sink.alive();
          continue;
        }
        open.stalled += 1;
        if (open.stalled >= MAX_STALLED) this.gone(name, open.viewer);
      }
      if (this.#open.size > 0) this.#watch();
    });
  }
}
