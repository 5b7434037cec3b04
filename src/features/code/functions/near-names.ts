/** The names that a mistyped name of a function may mean. */

/** Names that are compared. */
const MOST = 20_000;
/** The least likeness of two names, of 1, and what the same group adds to it. */
const LEAST = 0.45;
const SAME_GROUP = 0.1;
/** The longest part of a name that is compared. */
const MAX_LENGTH = 128;

/**
 * The names that have most pairs of letters in common with a name: order and separators of its words count little. A name of another
 * group may be meant.
 *
 * @param most the most names
 * @returns the nearest first
 */
export function nearNames(name: string, names: readonly string[], most: number): readonly string[] {
  const [group, wanted] = parted(name);
  const pairs = pairsOf(wanted);
  return names
    .slice(0, MOST)
    .map((each) => {
      const [other, rest] = parted(each);
      const isSame = group.toLowerCase() === other.toLowerCase();
      return { each, likeness: likeness(pairs, pairsOf(rest)), rank: isSame ? SAME_GROUP : 0 };
    })
    .filter((found) => found.likeness >= LEAST)
    .sort((one, other) => other.likeness + other.rank - one.likeness - one.rank || (one.each < other.each ? -1 : 1))
    .slice(0, most)
    .map(({ each }) => each);
}

/** The group and the name within it; no group for a name without a point. */
function parted(name: string): readonly [group: string, name: string] {
  const point = name.indexOf('.');
  return [name.slice(0, Math.max(point, 0)), name.slice(point + 1)];
}

function pairsOf(name: string): ReadonlyMap<string, number> {
  const text = ` ${name
    .slice(0, MAX_LENGTH)
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')} `;
  const pairs = new Map<string, number>();
  for (let at = 0; at + 1 < text.length; at += 1) {
    const pair = text.slice(at, at + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}

/** Dice's coefficient, from 0 to 1. */
function likeness(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number {
  const size = (pairs: ReadonlyMap<string, number>): number => [...pairs.values()].reduce((sum, each) => sum + each, 0);
  let shared = 0;
  for (const [pair, count] of one) shared += Math.min(count, other.get(pair) ?? 0);
  return (2 * shared) / (size(one) + size(other) || 1);
}
