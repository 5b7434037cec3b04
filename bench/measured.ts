/** What a run of calls comes to: calls for each second, and how long one took. */

export interface Measured {
  readonly perSecond: number;
  /** How many were made. */
  readonly calls: number;
  /** Milliseconds from a request's sending to its answer. */
  readonly p50: number;
  readonly p99: number;
  /** Share of the time that this process was at work, from 0 to 1. Near 1, it is the generator that is measured. */
  readonly busy: number;
  /** Processor time of the server for one call, in microseconds, where the server tells it. Whatever else the machine does changes it least. */
  readonly serverMicros?: number;
}

/** The figures of a run that began at `started`, on the clock of `performance.now()`. @param took milliseconds of each call, in any order */
export function measured(took: readonly number[], started: number, before: EventLoop): Measured {
  const seconds = (performance.now() - started) / 1000;
  const sorted = Float64Array.from(took).sort();
  return {
    perSecond: took.length / seconds,
    calls: took.length,
    p50: at(sorted, 0.5),
    p99: at(sorted, 0.99),
    busy: performance.eventLoopUtilization(before).utilization,
  };
}

type EventLoop = ReturnType<typeof performance.eventLoopUtilization>;

/** The value below which this share of the others lies. @param sorted smallest first */
export function at(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The value in the middle. */
export function median(values: readonly number[]): number {
  return at(Float64Array.from(values).sort(), 0.5);
}
