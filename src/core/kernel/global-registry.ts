/**
 * State that every copy of this package in one process shares: `troupe` may be one copy, and the program that it loads
 * may import another.
 */

/**
 * The shared value of this name; `make` creates it on first use.
 * @param name begins with `troupe.`
 * @example const loading = processWide('troupe.loading', () => ({ generation: 0 }));
 */
export function processWide<T extends object>(name: string, make: () => T): T {
  const key = Symbol.for(name);
  const found: unknown = Reflect.get(globalThis, key);
  // Only this package writes to its own symbols: the shape is a contract among its copies.
  if (found !== undefined) return found as T;
  const made = make();
  Reflect.set(globalThis, key, made);
  return made;
}
