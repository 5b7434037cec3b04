/**
 * A two-way index of listeners and topics: a change costs as much as it has listeners, and a departing listener as much
 * as it has topics.
 */
import type { Hearers } from './fan-out.ts';

export class Topics<Hearer> {
  readonly #hearers = new Map<string, Map<Hearer, number>>();
  readonly #topics = new Map<Hearer, Set<string>>();

  /** The number of listeners. */
  get size(): number {
    return this.#topics.size;
  }

  /** @param number at which it joins: greater than that of every earlier listener */
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

  /** The listeners of a topic. */
  hearers(topic: string): Hearers<Hearer> {
    return this.#hearers.get(topic) ?? NO_HEARERS;
  }

  /** The topics of a listener. */
  of(hearer: Hearer): ReadonlySet<string> {
    return this.#topics.get(hearer) ?? NOTHING;
  }
}

const NO_HEARERS: Hearers<never> = new Map<never, number>();
const NOTHING: ReadonlySet<never> = new Set<never>();

function leave<K, V>(index: Map<K, { delete(value: V): boolean; readonly size: number }>, key: K, value: V): void {
  const values = index.get(key);
  if (values?.delete(value) && values.size === 0) index.delete(key);
}

/** True if a change belongs to another principal: other principals must not learn that it happened (S-04). */
export function belongsToOther(change: { readonly owner?: string } | object, principal: string): boolean {
  return 'owner' in change && change.owner !== undefined && change.owner !== principal;
}
