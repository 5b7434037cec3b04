/** Who wants to hear of what, by either: a change costs as much as there are hearers of it, and one who leaves as much as it wanted. */
import type { Hearers } from './fan-out.ts';

export class Topics<Hearer> {
  readonly #hearers = new Map<string, Map<Hearer, number>>();
  readonly #topics = new Map<Hearer, Set<string>>();

  /** How many hear of anything. */
  get size(): number {
    return this.#topics.size;
  }

  /** @param number at which it joins: greater than that of any hearer before it */
  add(hearer: Hearer, topic: string, number: number): void {
    const hearers = this.#hearers.get(topic);
    if (!hearers) this.#hearers.set(topic, new Map([[hearer, number]]));
    else if (!hearers.has(hearer)) hearers.set(hearer, number);
    const topics = this.#topics.get(hearer);
    if (topics) topics.add(topic);
    else this.#topics.set(hearer, new Set([topic]));
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
  hearers(topic: string): Hearers<Hearer> {
    return this.#hearers.get(topic) ?? NOBODY;
  }

  /** What one wants to hear of. */
  of(hearer: Hearer): ReadonlySet<string> {
    return this.#topics.get(hearer) ?? NOTHING;
  }
}

const NOBODY: Hearers<never> = new Map<never, number>();
const NOTHING: ReadonlySet<never> = new Set<never>();

function leave<K, V>(index: Map<K, { delete(value: V): boolean; readonly size: number }>, key: K, value: V): void {
  const values = index.get(key);
  if (values?.delete(value) && values.size === 0) index.delete(key);
}

/** Whether a change is of something that is another's: whose it is not must not learn that there was any (S-04). */
export function belongsToOther(change: { readonly owner?: string } | object, principal: string): boolean {
  return 'owner' in change && change.owner !== undefined && change.owner !== principal;
}
