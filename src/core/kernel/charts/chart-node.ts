/**
 * A statechart as plain data: its states and their transitions. Pages and recordings contain it unchanged.
 */

export interface ChartNode {
  /** The state's own name; for the whole machine, the machine's id. */
  readonly key: string;
  /** The path, such as `paying.charging`; the empty string for the whole machine. */
  readonly path: string;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  /** True if it is the initial state of its parent. */
  readonly initial: boolean;
  readonly description?: string;
  readonly tags?: readonly string[];
  /** The names of the actions on entry and exit. */
  readonly entry?: readonly string[];
  readonly exit?: readonly string[];
  /** The actors that it invokes while it is active. */
  readonly invokes: readonly string[];
  readonly edges: readonly ChartEdge[];
  readonly nodes: readonly ChartNode[];
}

/** A transition. */
export interface ChartEdge {
  /** Unique within the chart: the path of its source, `#`, and its index there, such as `paying.charging#2`. */
  readonly id: string;
  /**
   * The event in XState's form: a type, a pattern (`a.*`), an internal type, or the empty string for an eventless
   * transition.
   */
  readonly on: string;
  /** The event in readable form, such as `pay`, `after 30 s`, `charge failed`. */
  readonly label: string;
  /** The guard's name; absent without a guard, the empty string for an unnamed one. */
  readonly guard?: string;
  /** The names of its actions. */
  readonly actions?: readonly string[];
  /** The paths of the target states; empty for a transition that stays. */
  readonly targets: readonly string[];
  readonly description?: string;
}

/** The condition of a transition in a word; undefined for an unconditional one. @example 'hasItems', 'otherwise' */
export function conditionOf(node: ChartNode, edge: ChartEdge): string | undefined {
  if (edge.guard !== undefined) return edge.guard === '' ? 'if' : edge.guard;
  const before = node.edges.slice(0, node.edges.indexOf(edge));
  return before.some(({ on, guard }) => on === edge.on && guard !== undefined) ? 'otherwise' : undefined;
}
