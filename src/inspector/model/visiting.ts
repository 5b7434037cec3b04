/** Counts visits: for each chart by all its actors as records arrive, and for one actor up to a record. */
import type { Stepped } from '../frames.ts';
import type { ActorLine } from './actor-line.ts';
import { Counter, type Coverage, coverageOf, type KnownChart, type Visits } from './chart-coverage.ts';

export class Visiting {
  readonly #counters = new Map<string, Counter>();

  /** @param name the chart's id, or the actor's address if its chart is unknown */
  step(
    name: string,
    before: readonly string[],
    step: Pick<Stepped, 'edges' | 'active'>,
    chart: KnownChart | undefined,
  ): void {
    let counter = this.#counters.get(name);
    if (!counter) {
      counter = new Counter();
      this.#counters.set(name, counter);
    }
    counter.step(before, step, chart);
  }

  /** Includes discarded records. */
  coverage(charts: Iterable<KnownChart>): readonly Coverage[] {
    return [...charts].map((chart) => coverageOf(chart, this.#counters.get(chart.id) ?? new Counter()));
  }

  clear(): void {
    this.#counters.clear();
  }
}

export function visitsUntil(line: ActorLine, chart: KnownChart | undefined, seq: number): Visits {
  const counter = new Counter();
  let before: readonly string[] = [];
  for (const standing of line.standings.until(seq)) {
    counter.step(before, standing, chart);
    before = standing.active;
  }
  return counter;
}
