/** The delay after a failed attempt: twice the one before, up to a maximum. */

/**
 * @param failures the number of failed attempts so far, at least 1
 * @example delayAfter({ fromMs: 100, toMs: 5_000 }, 3) // 400
 */
export function delayAfter({ fromMs, toMs }: { fromMs: number; toMs: number }, failures: number): number {
  return Math.min(toMs, fromMs * 2 ** (failures - 1));
}
