/** Finds endless eventless transitions before a machine is offered, because no timer could interrupt them. */
import type { AnyStateMachine, AnyStateNode } from 'xstate';

/** Maximum number of steps in one turn of an instance, for loops that a guard should end but does not. */
export const MAX_STEPS = 10_000;

/** Returns the states of an endless cycle in order; undefined if there is none. A cycle with a guard is not reported. */
export function endlessCycle(machine: AnyStateMachine): readonly string[] | undefined {
  const nodes = allNodes(machine.root);
  const ways = new Map(nodes.map((node) => [node, alwaysEntered(node)]));
  for (const start of nodes) {
    const cycle = wayBack(start, ways);
    if (cycle) return cycle.map(({ id }) => id);
  }
  return undefined;
}

function allNodes(node: AnyStateNode): readonly AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(allNodes)];
}

/** Returns the states that are always entered after this one: the targets of its first eventless transition, if that has no guard. */
function alwaysEntered(node: AnyStateNode): readonly AnyStateNode[] {
  const [first] = node.always ?? [];
  if (!first || first.guard !== undefined) return [];
  // Without a target, the transition repeats only if it changes the context. Each repetition would be the same.
  if (!first.target) return first.actions.some((action) => isAssign(node.machine, action)) ? [node] : [];
  const entered = first.target.flatMap(withInitial);
  // The machine stays in its state, but a state within may still have a way out.
  const around = first.target.some((target) => isWithin(target, node)) && !entered.some(({ always }) => always);
  return around ? [...entered, node] : entered;
}

function withInitial(node: AnyStateNode): readonly AnyStateNode[] {
  if (node.type === 'parallel') return [node, ...Object.values(node.states).flatMap(withInitial)];
  const initial = node.type === 'compound' ? node.initial?.target : undefined;
  return [node, ...(initial ?? []).flatMap(withInitial)];
}

function isWithin(node: AnyStateNode, ancestor: AnyStateNode): boolean {
  for (let at = node.parent; at; at = at.parent) if (at === ancestor) return true;
  return false;
}

function isAssign(machine: AnyStateMachine, action: unknown): boolean {
  const named = typeof action === 'string' ? action : undefined;
  const typed =
    typeof action === 'object' && action !== null && 'type' in action && typeof action.type === 'string'
      ? action.type
      : undefined;
  const name = named ?? typed;
  const resolved: unknown = name === undefined ? action : machine.implementations.actions[name];
  return typeof resolved === 'function' && 'type' in resolved && resolved.type === 'xstate.assign';
}

function wayBack(
  start: AnyStateNode,
  ways: ReadonlyMap<AnyStateNode, readonly AnyStateNode[]>,
): readonly AnyStateNode[] | undefined {
  const seen = new Set<AnyStateNode>();
  const walk = (node: AnyStateNode, way: readonly AnyStateNode[]): readonly AnyStateNode[] | undefined => {
    for (const next of ways.get(node) ?? []) {
      if (next === start) return [...way, next];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = walk(next, [...way, next]);
      if (found) return found;
    }
    return undefined;
  };
  return walk(start, [start]);
}
