/** Values by keys, where most keys have one value: only a key with several has a set. */
export class Groups<K, V extends object> {
  readonly #groups = new Map<K, V | Set<V>>();

  /** Number of keys. */
  get size(): number {
    return this.#groups.size;
  }

  add(key: K, value: V): void {
    const group = this.#groups.get(key);
    if (group instanceof Set) group.add(value);
    else this.#groups.set(key, group && group !== value ? new Set([group, value]) : value);
  }

  delete(key: K, value: V): void {
    const group = this.#groups.get(key);
    if (group instanceof Set) group.delete(value);
    if (group === value || (group instanceof Set && group.size === 0)) this.#groups.delete(key);
  }

  /** The values of a key. */
  of(key: K): Iterable<V> {
    return membersOf(this.#groups.get(key));
  }

  /** The values of all keys. */
  *all(): Iterable<V> {
    for (const group of this.#groups.values()) yield* membersOf(group);
  }
}

function membersOf<V>(group: V | Set<V> | undefined): Iterable<V> {
  if (group === undefined) return [];
  return group instanceof Set ? group : [group];
}
