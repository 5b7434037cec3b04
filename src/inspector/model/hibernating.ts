/** Handles that have left memory: no actor lives that would tell of them, but the server knows them. */

import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { isList, member, textOfValue } from './plain-values.ts';

/** The actor whose look has them. */
export const KNOWS_HIBERNATING = 'server';

export interface Hibernating {
  readonly count: number;
  /** The addresses of some. */
  readonly some: readonly string[];
}

/** As the server was looked at last; none where it was not. */
export function hibernatingOf(model: Model): Hibernating {
  const told = model.actor(KNOWS_HIBERNATING)?.look(LIVE)?.facts.hibernating;
  const count = member(told, 'count');
  const some = member(told, 'some');
  return {
    count: typeof count === 'number' ? count : 0,
    // One may have come back since.
    some: (isList(some) ? some : [])
      .flatMap((address) => textOfValue(address) ?? [])
      .filter((address) => model.actor(address)?.aliveAt(LIVE) !== true),
  };
}
