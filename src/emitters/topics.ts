/**
 * A two-way index of listeners and topics: a change costs as much as it has listeners, and a departing listener as much
 * as it has topics.
 */
import type { Listeners } from './fan-out.ts';

export class Topics<Hearer> {
  readonly #listeners = new Map<string, Map<Hearer, number>>();
  readonly #topics = new Map<Hearer, Set<string>>();

  /** The number of listeners. */
  get size(): number {
    return this.#topics.size;
  }

  /** @param number at which it joins: greater than that of every earlier listener */
  add(listener: Hearer, topic: string, number: number): void {
    const listeners = this.#listeners.get(topic);
    if (!listeners) this.#listeners.set(topic, new Map([[listener, number]]));
    else if (!listeners.has(listener)) listeners.set(listener, number);
    const topics = this.#topics.get(listener);
    if (topics) topics.add(topic);
    else this.#topics.set(listener, new Set([topic]));
  }

  remove(listener: Hearer, topic: string): void {
    leave(this.#listeners, topic, listener);
    leave(this.#topics, listener, topic);
  }

  forget(listener: Hearer): void {
    for (const topic of this.of(listener)) leave(this.#listeners, topic, listener);
    this.#topics.delete(listener);
  }

  /** The listeners of a topic. */
  listeners(topic: string): Listeners<Hearer> {
    return this.#listeners.get(topic) ?? NO_HEARERS;
  }

  /** The topics of a listener. */
  of(listener: Hearer): ReadonlySet<string> {
    return this.#topics.get(listener) ?? NOTHING;
  }
}

const NO_HEARERS: Listeners<never> = new Map<never, number>();
const NOTHING: ReadonlySet<never> = new Set<never>();

function leave<K, V>(index: Map<K, { delete(value: V): boolean; readonly size: number }>, key: K, value: V): void {
  const values = index.get(key);
  if (values?.delete(value) && values.size === 0) index.delete(key);
}

/** True if a change belongs to another principal: other principals must not learn that it happened (S-04). */
export function belongsToOther(change: { readonly owner?: string } | object, principal: string): boolean {
  return 'owner' in change && change.owner !== undefined && change.owner !== principal;
}
