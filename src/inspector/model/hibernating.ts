/** Handles and sessions that have left memory. They have no live actor, but the server lists the latest of them. */

import type { Plain } from '../frames.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { isList, isRecord, member, textOfValue } from './plain-values.ts';

/** The actor whose view lists them. */
export const KNOWS_HIBERNATING = 'server';

export interface Hibernating {
  readonly count: number;
  /** The addresses of the latest ones. */
  readonly some: readonly string[];
  /** The next timers of those that have one, in milliseconds of the server's clock. */
  readonly timers: ReadonlyMap<string, number>;
}

/** The hibernating handles. From the last view of the server; empty without one. */
export function hibernatingOf(model: Model, seq = LIVE): Hibernating {
  const { some, ...others } = listed(model, 'hibernating', seq);
  // A handle may have been restored since.
  return { ...others, some: some.filter((address) => model.actor(address)?.aliveAt(seq) !== true) };
}

/** The hibernating sessions, by a part of their key in the store: their actors have other addresses. */
export function hibernatingSessionsOf(model: Model, seq = LIVE): Hibernating {
  return listed(model, 'hibernating sessions', seq);
}

function listed(model: Model, fact: string, seq: number): Hibernating {
  const facts: Plain | undefined = model.actor(KNOWS_HIBERNATING)?.view(seq)?.facts[fact];
  const count = member(facts, 'count');
  const some = member(facts, 'some');
  const timers = member(facts, 'timers');
  return {
    count: typeof count === 'number' ? count : 0,
    some: (isList(some) ? some : []).flatMap((address) => textOfValue(address) ?? []),
    timers: new Map(
      Object.entries(isRecord(timers) ? timers : {}).filter(
        (timer): timer is [string, number] => typeof timer[1] === 'number',
      ),
    ),
  };
}

/** True if an actor has ended because it hibernates. */
export function hibernates(why: string | undefined): boolean {
  return why === 'hibernation' || why === 'idle: hibernating';
}
