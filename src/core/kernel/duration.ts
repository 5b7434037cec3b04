/** Prints a duration for people. */

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/**
 * A duration in its largest whole unit.
 *
 * @param delay milliseconds, or the name of a delay of a machine
 * @example durationOf(1_209_600_000) // '14 d'
 */
export function durationOf(delay: unknown): string {
  if (typeof delay !== 'number') return String(delay);
  const [unit, ms] = UNITS.find(([, size]) => delay >= size && delay % size === 0) ?? ['ms', 1];
  return `${delay / ms} ${unit}`;
}
