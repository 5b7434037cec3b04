/**
 * A two-way index of listeners and topics: a change costs as much as it has listeners, and a departing listener as much
 * as it has topics.
 */
import type { Listeners } from './fan-out.ts';

export class Topics<Hearer> {
  readonly #changed: ((topic: string, listened: boolean) => void) | undefined;
  readonly #listeners = new Map<string, Map<Hearer, number>>();
  readonly #topics = new Map<Hearer, Set<string>>();

  /** @param changed called when a topic has its first listener, and when it has none any more */
  constructor(changed?: (topic: string, listened: boolean) => void) {
    this.#changed = changed;
  }

  /** The number of listeners. */
  get size(): number {
    return this.#topics.size;
  }

  /** @param number at which it joins: greater than that of every earlier listener */
  add(listener: Hearer, topic: string, number: number): void {
    const listeners = this.#listeners.get(topic);
    if (!listeners) {
      this.#listeners.set(topic, new Map([[listener, number]]));
      this.#changed?.(topic, true);
    } else if (!listeners.has(listener)) listeners.set(listener, number);
    const topics = this.#topics.get(listener);
    if (topics) topics.add(topic);
    else this.#topics.set(listener, new Set([topic]));
  }

  remove(listener: Hearer, topic: string): void {
    if (leave(this.#listeners, topic, listener)) this.#changed?.(topic, false);
    leave(this.#topics, listener, topic);
  }

  forget(listener: Hearer): void {
    for (const topic of this.of(listener)) if (leave(this.#listeners, topic, listener)) this.#changed?.(topic, false);
    this.#topics.delete(listener);
  }

  /** The listeners of a topic. */
  listeners(topic: string): Listeners<Hearer> {
    return this.#listeners.get(topic) ?? NO_HEARERS;
  }

  /** The topics of a listener. */
  of(listener: Hearer): ReadonlySet<string> {
    return this.#topics.get(listener) ?? NO_LISTENERS;
  }
}

const NO_HEARERS: Listeners<never> = new Map<never, number>();
const NO_LISTENERS: ReadonlySet<never> = new Set<never>();

/** @returns true if that was the last value */
function leave<K, V>(index: Map<K, { delete(value: V): boolean; readonly size: number }>, key: K, value: V): boolean {
  const values = index.get(key);
  return values?.delete(value) === true && values.size === 0 && index.delete(key);
}

/** True if a change belongs to another principal: other principals must not learn that it happened (S-04). */
export function belongsToOther(change: { readonly owner?: string } | object, principal: string): boolean {
  return 'owner' in change && change.owner !== undefined && change.owner !== principal;
}
