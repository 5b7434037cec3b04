/** Who wants to hear of what, by either: a change costs as much as there are hearers of it, and one who leaves as much as it wanted. */
export class Topics<Hearer> {
  readonly #hearers = new Map<string, Set<Hearer>>();
  readonly #topics = new Map<Hearer, Set<string>>();

  /** How many hear of anything. */
  get size(): number {
    return this.#topics.size;
  }

  add(hearer: Hearer, topic: string): void {
    enter(this.#hearers, topic, hearer);
    enter(this.#topics, hearer, topic);
  }

  remove(hearer: Hearer, topic: string): void {
    leave(this.#hearers, topic, hearer);
    leave(this.#topics, hearer, topic);
  }

  forget(hearer: Hearer): void {
    for (const topic of this.of(hearer)) leave(this.#hearers, topic, hearer);
    this.#topics.delete(hearer);
  }

  /** Who wants to hear of it. */
  hearers(topic: string): ReadonlySet<Hearer> {
    return this.#hearers.get(topic) ?? NOBODY;
  }

  /** What one wants to hear of. */
  of(hearer: Hearer): ReadonlySet<string> {
    return this.#topics.get(hearer) ?? NOBODY;
  }
}

const NOBODY: ReadonlySet<never> = new Set<never>();

function enter<K, V>(index: Map<K, Set<V>>, key: K, value: V): void {
  const values = index.get(key);
  if (values) values.add(value);
  else index.set(key, new Set([value]));
}

function leave<K, V>(index: Map<K, Set<V>>, key: K, value: V): void {
  const values = index.get(key);
  if (values?.delete(value) && values.size === 0) index.delete(key);
}

/** Whether a change is of something that is another's: whose it is not must not learn that there was any (S-04). */
export function isAnothers(change: { readonly owner?: string } | object, principal: string): boolean {
  return 'owner' in change && change.owner !== undefined && change.owner !== principal;
}
