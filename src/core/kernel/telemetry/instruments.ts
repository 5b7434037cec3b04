/** The instruments of metrics: counters, gauges and histograms whose values are in typed arrays. */

import type { TraceIds } from '../../messages/spans.ts';

/** The attributes of one time series, by their OpenTelemetry names. */
export type Labels = Readonly<Record<string, string>>;

/** The name and the meaning of a measured value. */
export interface Description {
  /** The OpenTelemetry name, such as `troupe.sessions`. */
  readonly name: string;
  readonly help: string;
  /** A UCUM unit: `s`, or a noun in braces such as `{session}`. */
  readonly unit: string;
}

/**
 * Maximum number of time series of one instrument. Later ones share a last series, which has the attribute that OpenTelemetry defines
 * for this case.
 */
const MAX_SERIES = 2_000;
const OVERFLOW: Labels = { 'otel.metric.overflow': 'true' };
const FIRST_SERIES = 8;

/** The time series of one instrument: their labels. Each has a number, which is its place in the typed arrays. */
abstract class Series {
  readonly labels: Labels[] = [];
  #overflow = -1;

  /** Adds a time series. The caller keeps its number: the labels are not compared. */
  series(labels: Labels): number {
    if (this.labels.length < MAX_SERIES) {
      this.grow(this.labels.length + 1);
      return this.labels.push(labels) - 1;
    }
    if (this.#overflow === -1) {
      this.grow(MAX_SERIES + 1);
      this.#overflow = this.labels.push(OVERFLOW) - 1;
    }
    return this.#overflow;
  }

  protected abstract grow(series: number): void;
}

/** Makes room in an array for this many values. */
function grown(values: Float64Array<ArrayBuffer>, length: number): Float64Array<ArrayBuffer> {
  if (length <= values.length) return values;
  const larger = new Float64Array(Math.max(length, values.length * 2));
  larger.set(values);
  return larger;
}

/** A sum: one that only grows (`counter`), or one that also falls (`gauge`). */
export class Sum extends Series {
  readonly description: Description;
  readonly type: 'counter' | 'gauge';
  #values = new Float64Array(FIRST_SERIES);
  /** The series of each value of the only label, of an instrument that has one. */
  readonly #of = new Map<string, number>();

  constructor(type: 'counter' | 'gauge', description: Description) {
    super();
    this.type = type;
    this.description = description;
  }

  add(series: number, amount: number): void {
    this.#values[series] = (this.#values[series] ?? 0) + amount;
  }

  /** Adds 1 to the series with this value of this label. */
  count(label: string, value: string): void {
    let series = this.#of.get(value);
    if (series === undefined) {
      series = this.series({ [label]: value });
      // Values that came after the last series share one, and are not remembered.
      if (series < MAX_SERIES) this.#of.set(value, series);
    }
    this.add(series, 1);
  }

  value(series: number): number {
    return this.#values[series] ?? 0;
  }

  protected grow(series: number): void {
    this.#values = grown(this.#values, series);
  }
}

/** A value that is read when the metrics are read. */
export class ReadGauge {
  readonly type = 'read';
  readonly description: Description;
  readonly read: () => number;

  constructor(description: Description, read: () => number) {
    this.description = description;
    this.read = read;
  }
}

/** The trace of one observation, which OpenMetrics shows beside its bucket. */
export interface Exemplar {
  traceId: string;
  spanId: string;
  value: number;
  /** Milliseconds since 1970. */
  at: number;
}

/** The distribution of a duration in seconds. */
export class Histogram extends Series {
  readonly type = 'histogram';
  readonly description: Description;
  /** The upper bounds of the buckets, in seconds, ascending. A last bucket has no bound. */
  readonly bounds: Float64Array;
  /** For each series: the number of observations in each bucket, then their sum. */
  #values: Float64Array<ArrayBuffer>;
  readonly #width: number;
  /** The last trace of each bucket. Created with the first: servers without traces have none. */
  #exemplars: (Exemplar | undefined)[] | undefined;

  constructor(description: Description, bounds: readonly number[]) {
    super();
    this.description = description;
    this.bounds = Float64Array.from(bounds);
    this.#width = bounds.length + 2;
    this.#values = new Float64Array(this.#width * FIRST_SERIES);
  }

  /** @returns the place of the bucket, for {@link exemplify} */
  observe(series: number, seconds: number): number {
    const { bounds } = this;
    const values = this.#values;
    const from = series * this.#width;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
    const sum = from + bounds.length + 1;
    values[from + bucket] = (values[from + bucket] ?? 0) + 1;
    values[sum] = (values[sum] ?? 0) + seconds;
    return from + bucket;
  }

  /** Keeps the trace of an observation. @param place returned by {@link observe} @param at milliseconds since 1970 */
  exemplify(place: number, { traceId, spanId }: TraceIds, value: number, at: number): void {
    this.#exemplars ??= [];
    const kept = this.#exemplars[place];
    if (!kept) {
      this.#exemplars[place] = { traceId, spanId, value, at };
      return;
    }
    kept.traceId = traceId;
    kept.spanId = spanId;
    kept.value = value;
    kept.at = at;
  }

  /** The number of observations in one bucket, not cumulative. */
  bucket(series: number, bucket: number): number {
    return this.#values[series * this.#width + bucket] ?? 0;
  }

  exemplar(series: number, bucket: number): Readonly<Exemplar> | undefined {
    return this.#exemplars?.[series * this.#width + bucket];
  }

  count(series: number): number {
    let count = 0;
    for (let bucket = 0; bucket <= this.bounds.length; bucket += 1) count += this.bucket(series, bucket);
    return count;
  }

  sum(series: number): number {
    return this.#values[series * this.#width + this.bounds.length + 1] ?? 0;
  }

  protected grow(series: number): void {
    this.#values = grown(this.#values, series * this.#width);
  }
}

export type Instrument = Sum | ReadGauge | Histogram;
