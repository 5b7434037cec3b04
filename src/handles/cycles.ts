/** Finds eventless transitions that go round for ever, before a machine is offered: no timer could end them. */
import type { AnyStateMachine, AnyStateNode } from 'xstate';

/** Most steps of one turn of an instance: what a guard was to end, and does not, ends here instead of never. */
export const MAX_STEPS = 10_000;

/** The states of a cycle that nothing can leave, in order; undefined where there is none. What a guard may end is no such cycle. */
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

/** The states that are entered for certain once this one is: where its first eventless transition has no guard. */
function alwaysEntered(node: AnyStateNode): readonly AnyStateNode[] {
  const [first] = node.always ?? [];
  if (!first || first.guard !== undefined) return [];
  // Without a target it goes round only if it changes something; each round would be the same.
  if (!first.target) return first.actions.some((action) => isAssign(node.machine, action)) ? [node] : [];
  const entered = first.target.flatMap(withInitial);
  // It stays where it was: a state within may still have a way out.
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
