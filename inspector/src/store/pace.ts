/** The refresh rate of the panels: a model with many actors costs more to render, and is rendered less often. */

/** Number of actors above which rendering is slower. */
const MANY = 1_000;
/** Minimum time between two renderings, with few and with many actors. */
const FEW_MS = 50;
const MANY_MS = 250;

/**
 * The delay before a change is rendered, together with all changes in between.
 *
 * @param since milliseconds since the last rendering
 */
export function waitOf(actors: number, since: number): number {
  if (actors <= MANY) return FEW_MS;
  return Math.min(MANY_MS, Math.max(0, MANY_MS - since));
}
