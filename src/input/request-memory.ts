/** Counts what the handler of one request makes the server retain: the results of its steps, its open questions, and the replies to them. */
import type { ActiveRequest, HeldMemory } from '../messages/active-request.ts';
import { HEAP_BYTES } from '../protocol/heap.ts';
import type { Quota, Reservation } from '../quota.ts';

export class RequestMemory implements HeldMemory {
  readonly #taken: Reservation;
  #released = false;

  constructor(retained: Quota, { client }: ActiveRequest) {
    this.#taken = retained.take(client.principal, 0, client.session?.id);
  }

  hold(bytes: number, forced?: 'forced'): string | undefined {
    return this.#released ? undefined : this.#taken.resize(this.#taken.amount + bytes, forced)?.message;
  }

  free(bytes: number): void {
    if (!this.#released) this.#taken.resize(Math.max(0, this.#taken.amount - bytes));
  }

  release(): void {
    this.#released = true;
    this.#taken.release();
  }
}

const TWO_BYTES = /[^\0-\xff]/;

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
