/** The actor with the statechart to show: the selected one, or its nearest ancestor with a chart. */
import {
  type ActorLine,
  hasFinished,
  isAuthored,
  isMachinery,
  type Model,
} from '../../../src/inspector/model/index.ts';
import { known, place, selection } from '../store/state.ts';

export function charted(): ActorLine | undefined {
  const { actor, exchange } = selection.value;
  if (actor !== undefined) return above(known(), actor);
  if (exchange === undefined) return ofOnlyMachine(known());
  const found = exchange === undefined ? undefined : known().exchanges.find(exchange);
  if (!found) return undefined;
  return servingOf(known(), found.seq) ?? above(known(), found.servedBy ?? '');
}

/** Without a selection: the newest instance of the only machine, one that has not finished if there is one. */
function ofOnlyMachine(from: Model): ActorLine | undefined {
  const at = place.value;
  const lines = [...from.actors.values()].filter(
    ({ kind, chart }) => chart !== undefined && isAuthored(kind) && !isMachinery(kind),
  );
  if (new Set(lines.map(({ chart }) => chart)).size !== 1) return undefined;
  const alive = lines.filter((line) => line.aliveAt(at));
  return alive.findLast(({ address }) => !hasFinished(from, address, at)) ?? alive.at(-1);
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
