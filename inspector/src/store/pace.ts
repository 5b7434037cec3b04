/** How soon the panels follow what the model knows: what is shown of many actors costs more, and is shown anew less often. */

/** From so many actors on they are many. */
const MANY = 1_000;
/** The least time from one rendering to the next, of few actors and of many. */
const FEW_MS = 50;
const MANY_MS = 250;

/**
 * How long a change waits to be shown, with all that change meanwhile.
 *
 * @param since milliseconds since the last were shown
 */
export function waitOf(actors: number, since: number): number {
  if (actors <= MANY) return FEW_MS;
  return Math.min(MANY_MS, Math.max(0, MANY_MS - since));
}
