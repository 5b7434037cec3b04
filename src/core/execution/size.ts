/** Estimates the length of a value as JSON without serializing it. */

/**
 * The length of `value` as JSON text in characters, exact except for escapes. Stops counting above `enough`, also in
 * cycles.
 */
export function jsonLength(value: unknown, enough = Number.POSITIVE_INFINITY): number {
  let length = 0;
  const stack: unknown[] = [value];
  while (stack.length > 0 && length <= enough) {
    const next = stack.pop();
    if (typeof next === 'string') length += next.length + 2;
    else if (typeof next !== 'object' || next === null) length += String(next).length;
    else if (Array.isArray(next)) {
      length += 2 + Math.max(0, next.length - 1);
      for (const item of next) stack.push(item);
    } else {
      const entries = Object.entries(next);
      length += 2 + Math.max(0, entries.length - 1);
      for (const [key, item] of entries) {
        length += key.length + 3;
        stack.push(item);
      }
    }
  }
  return length;
}
