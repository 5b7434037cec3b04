/** Suggests the known word that a mistyped word may mean. */

/** The most edits between a mistyped word and the word that is suggested. */
const MAX_EDITS = 2;

/** Suggests the known word that is closest to an unknown one. @returns such as ` (did you mean serve?)`, or empty */
export function suggestion(unknown: string, known: readonly string[]): string {
  // A longer word has more edits than the limit.
  const distances = known
    .filter((word) => Math.abs(word.length - unknown.length) <= MAX_EDITS)
    .map((word) => [word, edits(unknown, word)] as const);
  const [closest] = distances.sort(([, one], [, other]) => one - other);
  if (!closest || closest[1] > Math.min(MAX_EDITS, closest[0].length - 1)) return '';
  return ` (did you mean ${closest[0]}?)`;
}

/** The Levenshtein distance of two words. */
function edits(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (let to = 1; to <= other.length; to += 1) {
      const [left = 0, up = 0, diagonal = 0] = [next[to - 1], row[to], row[to - 1]];
      next.push(Math.min(left + 1, up + 1, diagonal + (letter === other[to - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
