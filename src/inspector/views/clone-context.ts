/**
 * A copy of a statechart's context on which an author's guards and assigns can run: some of them modify their
 * arguments.
 */
import { types } from 'node:util';

/**
 * Copies plain objects, arrays, maps and sets, including cycles. Everything else is shared: actors, functions,
 * instances of classes, proxies, and values beyond the limit. Runs no code of the value.
 */
export function cloneContext(value: unknown, most: number): unknown {
  return new Copying(most).copy(value);
}

class Copying {
  readonly #copies = new Map<object, unknown>();
  #left: number;

  constructor(most: number) {
    this.#left = most;
  }

  copy(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || types.isProxy(value)) return value;
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    const empty = emptyOf(value);
    const size = sizeOf(value);
    if (empty === undefined || size > this.#left) return value;
    this.#left -= size;
    this.#copies.set(value, empty);
    if (empty instanceof Map)
      for (const [key, member] of Map.prototype.entries.call(value)) empty.set(key, this.copy(member));
    else if (empty instanceof Set) for (const member of Set.prototype.values.call(value)) empty.add(this.copy(member));
    else
      for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(value)))
        Object.defineProperty(empty, name, 'value' in member ? { ...member, value: this.copy(member.value) } : member);
    return empty;
  }
}

function sizeOf(value: object): number {
  if (Array.isArray(value)) return value.length + 1;
  return (types.isMap(value) || types.isSet(value) ? value.size : Object.keys(value).length) + 1;
}

function emptyOf(value: object): object | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Map.prototype) return new Map();
  if (prototype === Set.prototype) return new Set();
  if (prototype === Array.prototype) return [];
  if (prototype === Object.prototype) return {};
  return prototype === null ? Object.create(null) : undefined;
}
