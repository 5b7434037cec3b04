/** What is different between two places of the stream: which actors have begun and ended, their states, their contexts. */
import type { Model } from './model.ts';
import { type Difference, differences } from './plain-values.ts';

/** What has changed of one actor between two places of the stream. */
export interface ActorChange {
  readonly actor: string;
  /** Undefined: it did not live then. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly context: readonly Difference[];
}

/** In either order of the two. Of actors that were the same, nothing is told. */
export function changes(model: Model, a: number, b: number): readonly ActorChange[] {
  const [from, to] = a <= b ? [a, b] : [b, a];
  const changed: ActorChange[] = [];
  for (const [actor, line] of model.actors) {
    const before = line.aliveAt(from) ? line.standing(from)?.state : undefined;
    const after = line.aliveAt(to) ? line.standing(to)?.state : undefined;
    const both = before !== undefined && after !== undefined;
    const context = both ? differences(line.context(from), line.context(to)) : [];
    if (before !== after || context.length > 0) changed.push({ actor, before, after, context });
  }
  return changed;
}
