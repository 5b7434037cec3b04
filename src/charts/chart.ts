/** Reads an author's statechart into plain data: its states, and what leads out of each. */
import { createHash } from 'node:crypto';
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { isObject } from '../protocol/json.ts';
import type { ChartEdge, ChartNode } from './chart-node.ts';

export function readChart(machine: AnyStateMachine): ChartNode {
  return readNode(machine.root, true);
}

function readNode(node: AnyStateNode, initial: boolean): ChartNode {
  const first = node.type === 'compound' ? node.initial.target : undefined;
  const entry = namesOf(node.entry);
  const exit = namesOf(node.exit);
  return {
    key: node.key,
    path: placeOf(node),
    type: node.type,
    initial,
    ...(node.description === undefined ? {} : { description: node.description }),
    ...(node.tags.length === 0 ? {} : { tags: node.tags }),
    ...(entry.length === 0 ? {} : { entry }),
    ...(exit.length === 0 ? {} : { exit }),
    invokes: node.invoke.map(({ id, src }) => {
      const name = invokedName(node, id);
      return typeof src !== 'string' || src.startsWith('xstate.') || src === name ? name : `${name} (${src})`;
    }),
    edges: leaving(node).map((transition) => readEdge(transition, node)),
    nodes: Object.values(node.states).map((child) =>
      readNode(child, node.type === 'parallel' || first?.some((target) => isWithin(target, child)) === true),
    ),
  };
}

function readEdge(transition: AnyTransitionDefinition, node: AnyStateNode): ChartEdge {
  const actions = namesOf(transition.actions);
  return {
    id: edgeOf(transition),
    on: transition.eventType,
    label: labelOf(transition, node),
    ...(transition.guard === undefined ? {} : { guard: guardName(transition.guard) }),
    ...(actions.length === 0 ? {} : { actions }),
    targets: (transition.target ?? []).map(placeOf),
    ...(transition.description === undefined ? {} : { description: transition.description }),
  };
}

/** Everything that leads out of a state, in the order in which edges are numbered. */
function leaving(node: AnyStateNode): readonly AnyTransitionDefinition[] {
  return [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
}

const ids = new WeakMap<AnyTransitionDefinition, string>();

/** What the chart calls a transition: its {@link ChartEdge.id}. */
export function edgeOf(transition: AnyTransitionDefinition): string {
  const known = ids.get(transition);
  if (known !== undefined) return known;
  const { source } = transition;
  leaving(source).forEach((each, index) => {
    ids.set(each, `${placeOf(source)}#${index}`);
  });
  return ids.get(transition) ?? `${placeOf(source)}#?`;
}

/** The names of actions. Those that XState adds for a delay are none of the author's. */
function namesOf(actions: readonly unknown[]): readonly string[] {
  return actions.flatMap((action) => {
    if (typeof action === 'string') return [action];
    if (typeof action !== 'function') return isObject(action) && typeof action.type === 'string' ? [action.type] : [];
    const type: unknown = 'type' in action ? action.type : undefined;
    const raised: unknown = 'event' in action ? action.event : undefined;
    const ofDelay = isObject(raised) ? raised.type : 'sendId' in action ? action.sendId : undefined;
    if (typeof ofDelay === 'string' && ofDelay.startsWith('xstate.after.')) return [];
    if (typeof type === 'string') return [type.replace(/^xstate\./, '')];
    return [action.name === '' ? 'action' : action.name];
  });
}

function placeOf(node: AnyStateNode): string {
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
export function nodesOf(chart: ChartNode): readonly ChartNode[] {
  return [chart, ...chart.nodes.flatMap(nodesOf)];
}

/** Whether a transition is for events of that type: written out, or by a pattern. */
export function isFor({ on }: Pick<ChartEdge, 'on'>, type: string): boolean {
  return on === type || on === '*' || (on.endsWith('.*') && type.startsWith(on.slice(0, -1)));
}

/** The events that a chart names: no patterns, and none of XState's own. */
export function eventsOf(chart: ChartNode): readonly string[] {
  const types = nodesOf(chart).flatMap(({ edges }) => edges.map(({ on }) => on));
  return [...new Set(types)].filter((type) => type !== '' && !type.includes('*') && !type.startsWith('xstate.'));
}

/** The states that take an event, by their paths; all, where the whole machine does. */
export function takers(chart: ChartNode, type: string): readonly string[] | 'all' {
  if (chart.edges.some((transition) => isFor(transition, type))) return 'all';
  return nodesOf(chart)
    .filter(({ edges }) => edges.some((transition) => isFor(transition, type)))
    .map(({ path }) => path);
}

/**
 * Names a chart by its states, transitions and invocations: two that differ in one of them have different names. It does not
 * see what actions do, nor what the context is like.
 */
export function fingerprint(chart: ChartNode): string {
  const hash = createHash('sha256');
  for (const { path, type, initial, invokes, edges } of nodesOf(chart)) {
    const outgoing = edges.map(({ on, guard, targets }) => [on, guard ?? '-', ...targets].join('\t'));
    hash.update([path, type, initial, ...invokes, '', ...outgoing, ''].join('\n'));
  }
  return hash.digest('base64url').slice(0, 12);
}
