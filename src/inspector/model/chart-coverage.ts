/** Coverage: the visited states and transitions of a statechart, by one actor or by all actors with that chart. */
import type { ChartEdge, ChartNode, Stepped } from '../frames.ts';

export interface Visits {
  /** By path. */
  readonly states: ReadonlyMap<string, number>;
  /** By id. */
  readonly edges: ReadonlyMap<string, number>;
}

export interface Coverage {
  readonly chart: string;
  readonly name: string;
  readonly visits: Visits;
  /** Every state except the root and history states, and every transition. */
  readonly states: readonly ChartNode[];
  readonly edges: readonly { readonly edge: ChartEdge; readonly from: ChartNode }[];
  readonly visitedStates: number;
  readonly visitedEdges: number;
}

/** A chart with an index of its states and transitions. */
export class KnownChart {
  readonly id: string;
  readonly root: ChartNode;
  readonly nodes: ReadonlyMap<string, ChartNode>;
  readonly edges: ReadonlyMap<string, { readonly edge: ChartEdge; readonly from: ChartNode }>;

  constructor(id: string, root: ChartNode) {
    this.id = id;
    this.root = root;
    const all = nodesOf(root);
    this.nodes = new Map(all.map((node) => [node.path, node]));
    this.edges = new Map(all.flatMap((from) => from.edges.map((edge) => [edge.id, { edge, from }])));
  }

  /**
   * The paths in the text of a state, such as `paying.charging & shipping`; empty if they are not paths of this chart.
   */
  activeOf(state: string): readonly string[] {
    // The text of a state may end with a count.
    const paths = state.replace(/ \(\d+\)$/, '').split(' & ');
    return paths.every((path) => this.nodes.has(path)) ? paths : [];
  }

  /** The initial states inside of a state. */
  beginningsIn(path: string): readonly string[] {
    const node = this.nodes.get(path);
    return node ? beginnings(node) : [];
  }
}

function beginnings({ nodes }: ChartNode): readonly string[] {
  return nodes.filter(({ initial }) => initial).flatMap((node) => [node.path, ...beginnings(node)]);
}

function nodesOf(node: ChartNode): readonly ChartNode[] {
  return [node, ...node.nodes.flatMap(nodesOf)];
}

/** A path and its ancestors. @example `a.b` is in `a` and `a.b` */
export function around(path: string): readonly string[] {
  const keys = path.split('.');
  return keys.map((_, index) => keys.slice(0, index + 1).join('.'));
}

/** Counts visits step by step. */
export class Counter implements Visits {
  readonly states = new Map<string, number>();
  readonly edges = new Map<string, number>();

  /** @param before the active states before the step */
  step(before: readonly string[], { edges, active }: Pick<Stepped, 'edges' | 'active'>, chart?: KnownChart): void {
    const was = new Set(before.flatMap(around));
    const now = new Set(active.flatMap(around));
    const taken = edges.flatMap((id) => chart?.edges.get(id) ?? []);
    // A target is entered even if it was active: the transition left it first.
    const entered = new Set(taken.flatMap(({ edge }) => edge.targets));
    const reached = [
      ...now,
      // A state that the step only passed through is active neither before nor after it: it, or its initial state, was
      // left again.
      ...taken.filter(({ from }) => from.path !== '').flatMap(({ from }) => around(from.path)),
      ...[...entered].flatMap(around),
      ...[...entered].filter((path) => !now.has(path)).flatMap((path) => chart?.beginningsIn(path) ?? []),
    ];
    for (const path of reached) if (!was.has(path)) entered.add(path);
    for (const path of entered) count(this.states, path);
    for (const id of edges) count(this.edges, id);
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

export function coverageOf(chart: KnownChart, visits: Visits): Coverage {
  const states = [...chart.nodes.values()].filter(({ path, type }) => path !== '' && type !== 'history');
  const edges = [...chart.edges.values()];
  return {
    chart: chart.id,
    name: chart.root.key,
    visits,
    states,
    edges,
    visitedStates: states.filter(({ path }) => visits.states.has(path)).length,
    visitedEdges: edges.filter(({ edge }) => visits.edges.has(edge.id)).length,
  };
}
