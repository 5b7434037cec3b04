/** The current marks of each state and edge: computed once for each change, and read by every part of the picture. */

import { walk } from '../../../src/features/charts/sketch.ts';
import type { ChartEdge, ChartNode, Next } from '../../../src/inspector/frames.ts';
import type { ChartProps, RunningDelay } from './props.ts';

export interface Marks {
  /** The active leaf states, and their ancestors. */
  readonly active: ReadonlySet<string>;
  readonly around: ReadonlySet<string>;
  readonly taken: ReadonlySet<string>;
  readonly takenAt: number;
  readonly allowed: ReadonlyMap<string, Next['allowed']>;
  readonly delays: ReadonlyMap<string, RunningDelay>;
  /** The states that a running timer may end, by path. */
  readonly waiting: ReadonlyMap<string, RunningDelay>;
  readonly lookEdges: ReadonlySet<string>;
  readonly lookStates: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

export function marksOf(props: ChartProps): Marks {
  const { chart, active, taken, next = [], delays = [], whatIf } = props;
  const around = new Set<string>();
  for (const path of active) for (const outer of outersOf(path)) around.add(outer);
  const leaves = new Set(active.length === 0 && chart.nodes.length === 0 ? [''] : active);
  const timed = new Map<string, RunningDelay>();
  const waiting = new Map<string, RunningDelay>();
  if (delays.length > 0)
    walk(chart, (node) => {
      for (const edge of node.edges) {
        const delay = delays.find(({ event }) => event === edge.on);
        if (delay === undefined) continue;
        timed.set(edge.id, delay);
        const other = waiting.get(node.path);
        if (other === undefined || other.due > delay.due) waiting.set(node.path, delay);
      }
    });
  return {
    active: leaves,
    around,
    taken: taken === undefined ? NONE : new Set(taken.edges),
    takenAt: taken?.seq ?? 0,
    allowed: new Map(next.map(({ edge, allowed }) => [edge, allowed])),
    delays: timed,
    waiting,
    lookEdges: whatIf === undefined ? NONE : new Set(whatIf.edges),
    lookStates: whatIf === undefined ? NONE : new Set(whatIf.active),
  };
}

/**
 * The paths of the ancestors of a state, the root last. A key may contain a dot; then one of these is no state, which
 * does no harm.
 */
function outersOf(path: string): readonly string[] {
  const outers = path === '' ? [] : [''];
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) outers.unshift(path.slice(0, dot));
  return outers;
}

/** The status of a line: of several transitions, the most permissive. */
export function allowedOf(edges: readonly ChartEdge[], { allowed }: Marks): Next['allowed'] | undefined {
  const said = edges.map(({ id }) => allowed.get(id));
  return (
    said.find((each) => each === 'yes') ?? said.find((each) => each === 'unknown') ?? said.find((each) => each === 'no')
  );
}

export function stateNamed(chart: ChartNode, path: string): ChartNode | undefined {
  let found: ChartNode | undefined;
  walk(chart, (node) => {
    if (node.path === path) found = node;
  });
  return found;
}
