/** Estimates the memory of values: of parsed JSON, which exceeds the length of its text, and of what handlers return. */

/** Bytes that values take in V8's heap, without the characters of strings, measured with Node 20. */
export const HEAP_BYTES = {
  string: 24,
  number: 16,
  object: 56,
  key: 48,
  array: 48,
  item: 8,
  map: 168,
  digits: 114,
} as const;

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

/**
 * Estimates how many bytes a value takes in the heap, and how many characters it has as JSON. Unlike a message, the value may have
 * cycles, maps and buffers. An instance of a class counts as one object, because what it refers to may belong to the whole program.
 */
export function retainedSize(value: unknown): { readonly bytes: number; readonly length: number } {
  const seen = new Set<object>();
  const stack: unknown[] = [value];
  let bytes = 0;
  let length = 0;
  while (stack.length > 0) {
    const next = stack.pop();
    if (typeof next === 'string') {
      bytes += HEAP_BYTES.string + next.length * (TWO_BYTES.test(next) ? 2 : 1);
      length += next.length + 2;
    } else if (typeof next !== 'object' || next === null) {
      bytes += HEAP_BYTES.number;
      length += typeof next === 'number' ? String(next).length : 4;
    } else if (!seen.has(next)) {
      seen.add(next);
      bytes += HEAP_BYTES.object;
      length += 2;
      if (ArrayBuffer.isView(next) || next instanceof ArrayBuffer) {
        bytes += next.byteLength;
        length += next.byteLength;
      } else if (Array.isArray(next) || next instanceof Set) {
        for (const item of next) {
          bytes += HEAP_BYTES.item;
          length += 1;
          stack.push(item);
        }
      } else if (next instanceof Map) {
        for (const [key, item] of next) {
          bytes += HEAP_BYTES.key;
          stack.push(key, item);
        }
      } else if (isPlain(next)) {
        for (const [key, item] of Object.entries(next)) {
          bytes += HEAP_BYTES.key + key.length;
          length += key.length + 4;
          stack.push(item);
        }
      }
    }
  }
  return { bytes, length };
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
