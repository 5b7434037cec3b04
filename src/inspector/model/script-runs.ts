/** The runs of scripts that a model knows. */
import type { ActorLine } from './actor-line.ts';
import type { Model } from './model.ts';

/** The newest first. */
export function scriptRuns(model: Model, seq: number): readonly ActorLine[] {
  return [...model.actors.values()]
    .filter(({ kind, lives }) => kind === 'run' && lives.before(seq) !== undefined)
    .sort((a, b) => (b.lives.first?.seq ?? 0) - (a.lives.first?.seq ?? 0));
}
