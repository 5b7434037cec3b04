/** The condition of a transition, in a word. */
import type { ChartEdge, ChartNode } from './chart-node.ts';

/** Undefined for an unconditional transition. @example 'hasItems', 'otherwise' */
export function conditionOf(node: ChartNode, edge: ChartEdge): string | undefined {
  if (edge.guard !== undefined) return edge.guard === '' ? 'if' : edge.guard;
  const before = node.edges.slice(0, node.edges.indexOf(edge));
  return before.some(({ on, guard }) => on === edge.on && guard !== undefined) ? 'otherwise' : undefined;
}
