/** The metrics of schedules, which those of a server and those of its machines share. */
import { Histogram } from '../../core/kernel/telemetry/instruments.ts';
import type { Metrics } from '../../core/kernel/telemetry/metrics.ts';

/** In seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600, 86_400];
const known = new WeakMap<Metrics, (ms: number) => void>();

/** Counts by how many milliseconds slots are late. The metric exists from the first use on. */
export function latenessOf(metrics: Metrics): (ms: number) => void {
  const found = known.get(metrics);
  if (found) return found;
  const help = 'Time from the date of a slot to the beginning of its run.';
  const histogram = new Histogram({ name: 'troupe.schedule.lateness', help, unit: 's' }, BOUNDS);
  metrics.add(histogram);
  const series = histogram.series({});
  const count = (ms: number): void => void histogram.observe(series, ms / 1_000);
  known.set(metrics, count);
  return count;
}
