/** Estimates the memory of parsed JSON, which exceeds the length of its text. */

/** Bytes that values take in V8's heap, without the characters of strings, measured with Node 20. */
export const HEAP_BYTES = { string: 24, number: 16, object: 56, key: 48, array: 48, item: 8 } as const;

const TWO_BYTES = /[^\0-\xff]/;

/**
 * Estimates the heap bytes of a JSON value: up to 21 times its text (`{}` in a list), and between 0.7 and 4 times the
 * size that V8 uses. Stops counting once the estimate exceeds `enough`. The value must not have cycles.
 */
export function heapBytes(value: unknown, enough = Number.POSITIVE_INFINITY): number {
  if (typeof value === 'string') return HEAP_BYTES.string + value.length * (TWO_BYTES.test(value) ? 2 : 1);
  if (typeof value !== 'object' || value === null) return HEAP_BYTES.item;
  let bytes: number;
  if (Array.isArray(value)) {
    bytes = HEAP_BYTES.array + HEAP_BYTES.item * value.length;
    for (const item of value) {
      if (bytes > enough) break;
      // V8 stores a small integer in the array itself.
      if (typeof item === 'number') bytes += (item | 0) === item ? 0 : HEAP_BYTES.number;
      else if (typeof item === 'string' || (typeof item === 'object' && item !== null))
        bytes += heapBytes(item, enough - bytes);
    }
    return bytes;
  }
  bytes = HEAP_BYTES.object;
  for (const key in value) {
    if (bytes > enough) break;
    const member: unknown = value[key as keyof typeof value];
    bytes += HEAP_BYTES.key + heapBytes(member, enough - bytes);
  }
  return bytes;
}
