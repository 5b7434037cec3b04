/** Handles that have left memory. They have no live actor, but the server lists them. */

import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { isList, member, textOfValue } from './plain-values.ts';

/** The actor whose view lists them. */
export const KNOWS_HIBERNATING = 'server';

export interface Hibernating {
  readonly count: number;
  /** The addresses of some of them. */
  readonly some: readonly string[];
}

/** From the last view of the server; empty without one. */
export function hibernatingOf(model: Model): Hibernating {
  const facts = model.actor(KNOWS_HIBERNATING)?.view(LIVE)?.facts.hibernating;
  const count = member(facts, 'count');
  const some = member(facts, 'some');
  return {
    count: typeof count === 'number' ? count : 0,
    // A handle may have been restored since.
    some: (isList(some) ? some : [])
      .flatMap((address) => textOfValue(address) ?? [])
      .filter((address) => model.actor(address)?.aliveAt(LIVE) !== true),
  };
}
