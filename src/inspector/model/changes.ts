/** Differences between two records of the stream: started and ended actors, their states, their contexts. */
import type { Model } from './model.ts';
import { type Difference, differences } from './plain-values.ts';

/** The change of one actor between two records. */
export interface ActorChange {
  readonly actor: string;
  /** Undefined: it was not alive. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly context: readonly Difference[];
}

/** Accepts the two in either order. Omits unchanged actors. */
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
