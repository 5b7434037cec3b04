/** Reads an author's statechart into plain data: its states and their transitions. */

import { createHash } from 'node:crypto';
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { isObject } from '../../protocol/json.ts';
import { durationOf } from '../duration.ts';
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

/** All transitions of a state, in the order in which edges are numbered. */
function leaving(node: AnyStateNode): readonly AnyTransitionDefinition[] {
  return [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
}

const ids = new WeakMap<AnyTransitionDefinition, string>();

/** The {@link ChartEdge.id} of a transition. */
export function edgeOf(transition: AnyTransitionDefinition): string {
  const known = ids.get(transition);
  if (known !== undefined) return known;
  const { source } = transition;
  leaving(source).forEach((each, index) => {
    ids.set(each, `${placeOf(source)}#${index}`);
  });
  return ids.get(transition) ?? `${placeOf(source)}#?`;
}

/** The names of the author's actions, without those that XState adds for a delay. */
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

/** XState's internal event types, and their readable form. The id of their subject follows the type. */
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

/**
 * The name of an invocation: the author's, or else that of its source. Without either, XState names it by its position.
 */
function invokedName(node: AnyStateNode, id: string): string {
  const index = node.invoke.findIndex((invocation) => invocation.id === id);
  const src = node.invoke[index]?.src;
  if (id !== `${index}.${node.id}`) return id;
  return typeof src === 'string' && !src.startsWith('xstate.') ? src : 'work';
}

/** The name of an invocation of a machine by its id. @example nameOfInvocation(machine, '0.order.paying') // 'charge' */
export function nameOfInvocation({ root }: AnyStateMachine, id: string): string {
  const owner = /^\d+\.(.+)$/s.exec(id)?.[1];
  const node = owner === undefined ? undefined : nodeOf(root, owner);
  return node ? invokedName(node, id) : id;
}

/** The state with an id, within another or itself. */
export function nodeOf(node: AnyStateNode, id: string): AnyStateNode | undefined {
  if (node.id === id) return node;
  for (const child of Object.values(node.states)) {
    const found = nodeOf(child, id);
    if (found) return found;
  }
  return undefined;
}

/** The name of a guard; the empty string for one without a name. */
export function guardName(guard: unknown): string {
  if (typeof guard === 'string') return guard;
  if (typeof guard === 'function') {
    // Guards that XState combines from others (`and`, `or`, `not`) contain them.
    const parts: unknown = 'guards' in guard ? guard.guards : undefined;
    if (Array.isArray(parts)) return `${guard.name} ${parts.map(guardName).join(', ')}`;
    // An inline function is named after the member that it was assigned to.
    return guard.name === 'guard' ? '' : guard.name;
  }
  return isObject(guard) && typeof guard.type === 'string' ? guard.type : '';
}

/** Every state of a chart, each before its children. */
export function nodesOf(chart: ChartNode): readonly ChartNode[] {
  return [chart, ...chart.nodes.flatMap(nodesOf)];
}

/** True if a transition handles events of that type, by name or by a pattern. */
export function isFor({ on }: Pick<ChartEdge, 'on'>, type: string): boolean {
  return on === type || on === '*' || (on.endsWith('.*') && type.startsWith(on.slice(0, -1)));
}

/** The events that a chart names, without patterns and XState's internal ones. */
export function eventsOf(chart: ChartNode): readonly string[] {
  const types = nodesOf(chart).flatMap(({ edges }) => edges.map(({ on }) => on));
  return [...new Set(types)].filter((type) => type !== '' && !type.includes('*') && !type.startsWith('xstate.'));
}

/** The paths of the states that accept an event; `all` if the whole machine does. */
export function takers(chart: ChartNode, type: string): readonly string[] | 'all' {
  if (chart.edges.some((transition) => isFor(transition, type))) return 'all';
  return nodesOf(chart)
    .filter(({ edges }) => edges.some((transition) => isFor(transition, type)))
    .map(({ path }) => path);
}

/**
 * Identifies a chart by its states, transitions and invocations: two charts that differ in one of them have different
 * fingerprints. It covers neither the effects of actions nor the shape of the context.
 */
export function fingerprint(chart: ChartNode): string {
  const hash = createHash('sha256');
  for (const { path, type, initial, invokes, edges } of nodesOf(chart)) {
    const outgoing = edges.map(({ on, guard, targets }) => [on, guard ?? '-', ...targets].join('\t'));
    hash.update([path, type, initial, ...invokes, '', ...outgoing, ''].join('\n'));
  }
  return hash.digest('base64url').slice(0, 12);
}
