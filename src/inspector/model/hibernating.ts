/** Handles and sessions that have left memory. They have no live actor, but the server lists the latest of them. */

import type { Plain } from '../frames.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { isList, member, textOfValue } from './plain-values.ts';

/** The actor whose view lists them. */
export const KNOWS_HIBERNATING = 'server';

export interface Hibernating {
  readonly count: number;
  /** The addresses of the latest ones. */
  readonly some: readonly string[];
}

/** The hibernating handles. From the last view of the server; empty without one. */
export function hibernatingOf(model: Model, seq = LIVE): Hibernating {
  const { count, some } = listed(model, 'hibernating', seq);
  // A handle may have been restored since.
  return { count, some: some.filter((address) => model.actor(address)?.aliveAt(seq) !== true) };
}

/** The next timer of a hibernating handle in milliseconds of the server's clock, as a deadline; empty without one. */
export function timerOf(model: Model, address = '', seq = LIVE): { readonly until?: number } {
  const until = fact(model, seq, 'hibernating', 'timers', address);
  return typeof until === 'number' ? { until } : {};
}

/** The hibernating sessions, by a part of their key in the store: their actors have other addresses. */
export function hibernatingSessionsOf(model: Model, seq = LIVE): Hibernating {
  return listed(model, 'hibernating sessions', seq);
}

/** A part of a fact of the server. */
function fact(model: Model, seq: number, ...names: readonly string[]): Plain | undefined {
  return member(model.actor(KNOWS_HIBERNATING)?.view(seq)?.facts, ...names);
}

function listed(model: Model, name: string, seq: number): Hibernating {
  const count = fact(model, seq, name, 'count');
  const some = fact(model, seq, name, 'some');
  return {
    count: typeof count === 'number' ? count : 0,
    some: (isList(some) ? some : []).flatMap((address) => textOfValue(address) ?? []),
  };
}

/** True if an actor has ended because it hibernates. */
export function hibernates(why: string | undefined): boolean {
  return why === 'hibernation' || why === 'idle: hibernating';
}
