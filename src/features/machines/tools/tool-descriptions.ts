/** Describes a machine's tools to models: the machine itself, and the states in which its chart accepts each event. */

import { isFor, nodesOf, takers } from '../../../core/kernel/charts/chart.ts';
import type { ChartNode } from '../../../core/kernel/charts/chart-node.ts';
import type { CompiledSchema } from '../../../core/schema/schema.ts';
import type { KeyedKind } from '../machine-definition.ts';

export interface MachineDescription {
  /** The name of the machine. */
  readonly name: string;
  readonly chart: ChartNode;
  /** The events that clients may send. */
  readonly events: readonly string[];
  /** Its keys; undefined for instances with handles. */
  readonly keyed?: KeyedKind | undefined;
}

/** Maximum number of states that a description lists. */
const MAX_STATES = 12;

export function createDescription(said: MachineDescription, description: string | undefined): string {
  const { name, keyed } = said;
  const creates = keyed
    ? `Creates the ${name} ${ofKey(keyed)}, which exists once.`
    : `Creates a new ${name} and returns its handle: pass it to the other ${name} tools.`;
  return [
    ...(description === undefined ? [] : [description]),
    `${creates} Each answer lists the events that are accepted next.`,
    ...course(said),
  ].join('\n');
}

export function getDescription(said: MachineDescription, description: string | undefined): string {
  const { name, keyed } = said;
  const asks = 'and the events that it accepts next. Asks its open questions again.';
  if (!keyed) return `Shows the ${name} ${asks}`;
  const shows = `Shows the ${name} ${ofKey(keyed)}, ${asks}`;
  if (keyed.create === 'create') return shows;
  return [
    ...(description === undefined ? [] : [description]),
    `${shows} If it is absent, its first event creates it.`,
    ...course(said),
  ].join('\n');
}

/** Describes the states in which an instance begins and ends. */
function course({ chart }: MachineDescription): readonly string[] {
  const begins = chart.nodes.filter(({ initial }) => initial).map(({ key }) => key);
  const ends = chart.nodes.filter(({ type }) => type === 'final').map(({ key }) => key);
  if (begins.length === 0) return [];
  return [`It starts in ${list(begins)}${ends.length > 0 ? ` and ends in ${list(ends, 'or')}` : ''}.`];
}

/** Describes the owner of the instance, or the argument that names it. */
function ofKey({ kind, argument }: KeyedKind): string {
  switch (kind) {
    case 'principal':
      return 'of this user';
    case 'tenant':
      return "of this user's organization";
    case 'session':
      return 'of this session';
    case 'argument':
      return `that "${argument}" names`;
  }
}

export function eventDescription(said: MachineDescription, type: string, members: CompiledSchema): string {
  const { description } = members.json;
  const means = typeof description === 'string' && description !== '' ? description : meaning(said, type);
  return [means ?? `Sends "${type}" to the ${said.name}.`, `Accepted ${whereText(said, type)}.`].join('\n');
}

export function sendDescription(said: MachineDescription): string {
  const { name, events } = said;
  return [
    `Sends an event to the ${name}.`,
    'Events:',
    ...events.map((type) => `- ${type}: ${whereText(said, type)}${after(meaning(said, type))}`),
  ].join('\n');
}

function whereText({ chart }: MachineDescription, type: string): string {
  const paths = takers(chart, type);
  return paths === 'all' ? 'in any state' : `in ${list(paths)}`;
}

/** Returns the author's description of the first transition for an event. */
function meaning({ chart }: MachineDescription, type: string): string | undefined {
  for (const { edges } of nodesOf(chart)) {
    const described = edges.find((transition) => isFor(transition, type) && transition.description !== undefined);
    if (described) return described.description;
  }
  return undefined;
}

function after(text: string | undefined): string {
  return text === undefined ? '' : `. ${text}`;
}

function list(names: readonly string[], word = 'and'): string {
  if (names.length > MAX_STATES)
    return `${names.slice(0, MAX_STATES).join(', ')} and ${names.length - MAX_STATES} more`;
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)}`;
}
