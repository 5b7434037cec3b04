/** Idle times, which a timeline folds. */

export interface Idle {
  readonly from: number;
  readonly to: number;
}

/** The times between two moments that are more than `ms` apart. @param moments ascending */
export function idleTimes(moments: readonly number[], ms: number): readonly Idle[] {
  const idle: Idle[] = [];
  for (let index = 1; index < moments.length; index += 1) {
    const from = moments[index - 1] ?? 0;
    const to = moments[index] ?? 0;
    if (to - from > ms) idle.push({ from, to });
  }
  return idle;
}
