/** Reads an author's statechart into plain data: its states, and what leads out of each. */
import { createHash } from 'node:crypto';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { isObject } from '../protocol/json.ts';

export interface ChartState {
  /** Its own name; of the whole machine, the machine's id. */
  readonly key: string;
  /** Where it is, such as `paying.charging`; the empty text for the whole machine. */
  readonly path: string;
  readonly type: string;
  /** Its parent begins in it. */
  readonly initial: boolean;
  readonly description: string | undefined;
  /** What it invokes while it lasts. */
  readonly invokes: readonly string[];
  readonly transitions: readonly ChartTransition[];
  readonly states: readonly ChartState[];
}

export interface ChartTransition {
  /** As XState has it: an event's type, a pattern of them (`a.*`), one of XState's own, or the empty text for one without an event. */
  readonly on: string;
  /** The same for people, such as `pay`, `after 30 s`, `charge failed`. */
  readonly label: string;
  /** The guard's name; undefined where there is none, the empty text where it has none. */
  readonly guard: string | undefined;
  /** The paths of the states that it leads to; empty for one that stays. */
  readonly targets: readonly string[];
  readonly description: string | undefined;
}

export function readChart(machine: AnyStateMachine): ChartState {
  return readState(machine.root, true);
}

function readState(node: AnyStateNode, initial: boolean): ChartState {
  const first = node.type === 'compound' ? node.initial.target : undefined;
  const { always = [] } = node;
  return {
    key: node.key,
    path: pathOf(node),
    type: node.type,
    initial,
    description: node.description,
    invokes: node.invoke.map(({ id, src }) => {
      const name = invokedName(node, id);
      return typeof src !== 'string' || src.startsWith('xstate.') || src === name ? name : `${name} (${src})`;
    }),
    transitions: [...[...node.transitions.values()].flat(), ...always].map((transition) => ({
      on: transition.eventType,
      label: labelOf(transition, node),
      guard: transition.guard === undefined ? undefined : guardName(transition.guard),
      targets: (transition.target ?? []).map(pathOf),
      description: transition.description,
    })),
    states: Object.values(node.states).map((child) =>
      readState(child, node.type === 'parallel' || first?.some((target) => isWithin(target, child)) === true),
    ),
  };
}

function pathOf(node: AnyStateNode): string {
  return node.path.join('.');
}

function isWithin(node: AnyStateNode, ancestor: AnyStateNode): boolean {
  return node === ancestor || (node.parent !== undefined && isWithin(node.parent, ancestor));
}

/** How XState calls what no author wrote, and how people do. The id of what it is about follows it. */
const OWN: readonly (readonly [string, (id: string, node: AnyStateNode) => string])[] = [
  ['xstate.done.state.', () => 'done'],
  ['xstate.done.actor.', (id, node) => `${invokedName(node, id)} done`],
  ['xstate.error.actor.', (id, node) => `${invokedName(node, id)} failed`],
  ['xstate.snapshot.', (id, node) => `${invokedName(node, id)} changed`],
];

function labelOf(transition: { readonly eventType: string }, node: AnyStateNode): string {
  const { eventType } = transition;
  if (eventType === '') return 'always';
  if (eventType === '*') return 'any event';
  if ('delay' in transition) return `after ${durationOf(transition.delay)}`;
  for (const [prefix, name] of OWN) if (eventType.startsWith(prefix)) return name(eventType.slice(prefix.length), node);
  return eventType;
}

/** What an invocation is called: by its author, or else by what it invokes. XState calls it by its place, where neither has a name. */
function invokedName(node: AnyStateNode, id: string): string {
  const index = node.invoke.findIndex((invocation) => invocation.id === id);
  const src = node.invoke[index]?.src;
  if (id !== `${index}.${node.id}`) return id;
  return typeof src === 'string' && !src.startsWith('xstate.') ? src : 'work';
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

function durationOf(delay: unknown): string {
  if (typeof delay !== 'number') return String(delay);
  const [unit, ms] = UNITS.find(([, size]) => delay >= size && delay % size === 0) ?? ['ms', 1];
  return `${delay / ms} ${unit}`;
}

function guardName(guard: unknown): string {
  if (typeof guard === 'string') return guard;
  if (typeof guard === 'function') {
    // Those that XState puts together of others (`and`, `or`, `not`) hold them.
    const parts: unknown = 'guards' in guard ? guard.guards : undefined;
    if (Array.isArray(parts)) return `${guard.name} ${parts.map(guardName).join(', ')}`;
    // The name of a function that was written in place is the name of the member that it was written to.
    return guard.name === 'guard' ? '' : guard.name;
  }
  return isObject(guard) && typeof guard.type === 'string' ? guard.type : '';
}

/** Every state of a chart, each before those within it. */
export function statesOf(chart: ChartState): readonly ChartState[] {
  return [chart, ...chart.states.flatMap(statesOf)];
}

/** Whether a transition is for events of that type: written out, or by a pattern. */
export function isFor({ on }: Pick<ChartTransition, 'on'>, type: string): boolean {
  return on === type || on === '*' || (on.endsWith('.*') && type.startsWith(on.slice(0, -1)));
}

/** The events that a chart names: no patterns, and none of XState's own. */
export function eventsOf(chart: ChartState): readonly string[] {
  const types = statesOf(chart).flatMap(({ transitions }) => transitions.map(({ on }) => on));
  return [...new Set(types)].filter((type) => type !== '' && !type.includes('*') && !type.startsWith('xstate.'));
}

/** The states that take an event, by their paths; all, where the whole machine does. */
export function takers(chart: ChartState, type: string): readonly string[] | 'all' {
  if (chart.transitions.some((transition) => isFor(transition, type))) return 'all';
  return statesOf(chart)
    .filter(({ transitions }) => transitions.some((transition) => isFor(transition, type)))
    .map(({ path }) => path);
}

/** A state as XState has it, as paths: those of parallel states side by side. @example ['paying.charging'] */
export function pathsOf(value: unknown, within = ''): readonly string[] {
  if (typeof value === 'string') return [`${within}${value}`];
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const paths = pathsOf(inner, `${within}${name}.`);
    return paths.length === 0 ? [`${within}${name}`] : paths;
  });
}

/**
 * Names a chart by its states, transitions and invocations: two that differ in one of them have different names. It does not
 * see what actions do, nor what the context is like.
 */
export function fingerprint(chart: ChartState): string {
  const hash = createHash('sha256');
  for (const { path, type, initial, invokes, transitions } of statesOf(chart)) {
    const leaving = transitions.map(({ on, guard, targets }) => [on, guard ?? '-', ...targets].join('\t'));
    hash.update([path, type, initial, ...invokes, '', ...leaving, ''].join('\n'));
  }
  return hash.digest('base64url').slice(0, 12);
}
