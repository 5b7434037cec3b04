/** The actor with the statechart to show: the selected one, or its nearest ancestor with a chart. */
import type { ActorLine, Model } from '../../../src/inspector/model/index.ts';
import { known, selection } from '../store/state.ts';

export function charted(): ActorLine | undefined {
  const { actor, exchange } = selection.value;
  if (actor !== undefined) return above(known(), actor);
  const found = exchange === undefined ? undefined : known().exchanges.find(exchange);
  if (!found) return undefined;
  return servingOf(known(), found.seq) ?? above(known(), found.servedBy ?? '');
}

/** The actor itself, or the nearest of its ancestors. */
function above(from: Model, address: string): ActorLine | undefined {
  const seen = new Set<string>();
  for (let line = from.actor(address); line && !seen.has(line.address); line = from.actor(line.parent ?? '')) {
    if (line.chart !== undefined) return line;
    seen.add(line.address);
  }
  return undefined;
}

/** The actor that was created for a wire message. */
function servingOf(from: Model, seq: number): ActorLine | undefined {
  for (const line of from.actors.values())
    if (line.origin === seq && line.chart !== undefined && line.kind !== 'ask') return line;
  return undefined;
}
