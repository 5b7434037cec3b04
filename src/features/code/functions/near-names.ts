/** The names that a mistyped name of a function may mean. */

/** Names that are compared. */
const MOST = 20_000;
/** The least likeness of two names, of 1, and what the same group adds to it. */
const LEAST = 0.45;
const SAME_GROUP = 0.1;
/** The longest part of a name that is compared. */
const MAX_LENGTH = 128;

/** The pairs of letters in a name, with the number of each. */
interface Pairs {
  readonly counts: ReadonlyMap<string, number>;
  readonly size: number;
}

interface ComparedName {
  readonly whole: string;
  readonly group: string;
  readonly pairs: Pairs;
}

/** Finds those of some names that have most pairs of letters in common with a name: order and separators of words count little. */
export class NearNames {
  readonly #names: readonly ComparedName[];

  constructor(names: readonly string[]) {
    this.#names = names.slice(0, MOST).map((whole) => {
      const [group, name] = parted(whole);
      return { whole, group: group.toLowerCase(), pairs: pairsOf(name) };
    });
  }

  /** The nearest first. A name of another group may be meant. @param most the most names */
  of(name: string, most: number): readonly string[] {
    const [group, wanted] = parted(name);
    const pairs = pairsOf(wanted);
    return this.#names
      .map((each) => ({ each, likeness: likeness(pairs, each.pairs) }))
      .filter((found) => found.likeness >= LEAST)
      .map(({ each, likeness }) => ({
        whole: each.whole,
        rank: likeness + (each.group === group.toLowerCase() ? SAME_GROUP : 0),
      }))
      .sort((one, other) => other.rank - one.rank || (one.whole < other.whole ? -1 : 1))
      .slice(0, most)
      .map(({ whole }) => whole);
  }
}

/** The group and the name within it; no group for a name without a point. */
function parted(name: string): readonly [group: string, name: string] {
  const point = name.indexOf('.');
  return [name.slice(0, Math.max(point, 0)), name.slice(point + 1)];
}

function pairsOf(name: string): Pairs {
  const text = ` ${name
    .slice(0, MAX_LENGTH)
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')} `;
  const counts = new Map<string, number>();
  for (let at = 0; at + 1 < text.length; at += 1) {
    const pair = text.slice(at, at + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, size: text.length - 1 };
}

/** Dice's coefficient, from 0 to 1. */
function likeness(one: Pairs, other: Pairs): number {
  // The most that they can have in common.
  if ((2 * Math.min(one.size, other.size)) / (one.size + other.size) < LEAST) return 0;
  let shared = 0;
  for (const [pair, count] of one.counts) shared += Math.min(count, other.counts.get(pair) ?? 0);
  return (2 * shared) / (one.size + other.size);
}
