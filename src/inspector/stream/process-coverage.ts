/** Counts visits to the authors' statecharts as long as an inspector is open, with or without a viewer. */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { Inspection } from '../../core/kernel/inspection/inspection.ts';
import type { CoverageFrame } from '../frames.ts';
import { CoverageWatch, type Covered } from './coverage-counter.ts';

/** Interval in milliseconds at which the states of actors whose mail is omitted are recorded. */
const CATCH_UP_MS = 1_000;

export class ProcessCoverage {
  readonly #inspection: Inspection;
  readonly #clock: Clock;
  readonly #since: number;
  readonly #watch: CoverageWatch;
  #timer: Timer | undefined;

  constructor(server: Pick<Covered, 'machines' | 'tools'>, inspection: Inspection, clock: Clock) {
    this.#inspection = inspection;
    this.#clock = clock;
    this.#since = clock.now();
    const { machines, tools } = server;
    this.#watch = new CoverageWatch({
      machines,
      tools,
      // Mail and wire messages of other actors need no record: a call without a statechart costs nothing more.
      inspect: (listener) => inspection.count(listener, () => this.#omits()),
    });
  }

  /** The visits until now. */
  frame(): CoverageFrame {
    return {
      type: 'coverage',
      since: this.#since,
      charts: this.#watch.charts().map(({ coverage: { chart: id, name, visits }, root }) => ({
        id,
        name,
        chart: root,
        states: Object.fromEntries(visits.states),
        edges: Object.fromEntries(visits.edges),
      })),
    };
  }

  close(): void {
    this.#timer?.cancel();
    this.#watch.stop();
  }

  #omits(): true {
    this.#timer ??= this.#clock.after(CATCH_UP_MS, () => {
      this.#timer = undefined;
      this.#inspection.catchUp();
    });
    return true;
  }
}
