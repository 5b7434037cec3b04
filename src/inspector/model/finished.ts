/** The end of an instance: a final state, after which it accepts no events and waits for nothing. */
import type { ChartNode } from '../frames.ts';
import type { Model } from './model.ts';

/** States of a handle besides those of its chart (`machines/handle.ts`): its machine was stopped. */
const STOPPED: ReadonlySet<string> = new Set(['done', 'failed', 'ended', 'quarantined']);

/** True if an actor has reached a final state of its chart, or was stopped. It may still be in memory. */
export function hasFinished(model: Model, address: string, seq: number): boolean {
  const line = model.actor(address);
  const standing = line?.standing(seq);
  if (!line || !standing) return false;
  if (STOPPED.has(standing.state)) return true;
  const step = line.steps.before(seq);
  if (step && step.seq >= standing.seq) return step.status !== 'active';
  const chart = model.chartOf(address);
  return chart !== undefined && isDone(chart.root, standing.active);
}

/** XState: a compound state is done in a final child of its own, a parallel one when all of its regions are. */
function isDone(node: ChartNode, active: readonly string[]): boolean {
  if (node.type === 'parallel') return node.nodes.every((region) => isDone(region, active));
  return node.nodes.some(({ type, path }) => type === 'final' && active.includes(path));
}
