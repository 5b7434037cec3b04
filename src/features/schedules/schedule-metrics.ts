/** The metrics of schedules, which those of a server and those of its machines share. */
import type { Metrics } from '../../core/kernel/telemetry/metrics.ts';

/** In seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600, 86_400];
const known = new WeakMap<Metrics, (ms: number) => void>();

/** Counts by how many milliseconds slots are late. The metric exists from the first use on. */
export function latenessOf(metrics: Metrics): (ms: number) => void {
  const found =
    known.get(metrics) ??
    metrics.histogram('troupe.schedule.lateness', 'Time from the date of a slot to the beginning of its run.', BOUNDS);
  known.set(metrics, found);
  return found;
}
