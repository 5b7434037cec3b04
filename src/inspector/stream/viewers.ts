/** The viewers of one inspector, by name. Their number is limited, and a viewer that stops reading is dropped. */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { HelloFrame } from '../frames.ts';
import type { Observation } from './observation.ts';
import { type Sink, Viewer } from './viewer.ts';

export interface StreamSink extends Sink {
  /** Writes a sign of life. */
  alive(): void;
}

interface ViewersOptions {
  readonly observation: Observation;
  readonly clock: Clock;
  readonly max: number;
  hello(): HelloFrame;
}

/** Interval of the signs of life on a quiet stream. */
const ALIVE_MS = 15_000;
/** Number of these intervals without reading after which a viewer is dropped. */
const MAX_STALLED = 4;
/** Maximum number of stored names of earlier viewers. */
const MAX_KNOWN = 256;

interface Open {
  readonly viewer: Viewer;
  readonly sink: StreamSink;
  stalled: number;
}

export class Viewers {
  readonly #options: ViewersOptions;
  readonly #open = new Map<string, Open>();
  /**
   * Names that this process has seen. An unknown name belongs to a page that was connected to another process: its
   * sequence numbers are not valid here.
   */
  readonly #known = new Set<string>();
  #timer: Timer | undefined;

  constructor(options: ViewersOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** True if a viewer of that name may connect. */
  admits(name: string): boolean {
    return this.#open.has(name) || this.#open.size < this.#options.max;
  }

  /** Opens the stream of a viewer and replaces its earlier one. */
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

  /** The stream of a viewer has closed. */
  gone(name: string, viewer: Viewer): void {
    viewer.end();
    if (this.#open.get(name)?.viewer === viewer) this.#open.delete(name);
  }

  /** @returns false for an unknown viewer */
  focus(name: string, actors: readonly string[]): boolean {
    const open = this.#open.get(name);
    open?.viewer.focusOn(actors);
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
