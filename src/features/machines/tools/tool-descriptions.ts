/** Describes a machine's tools to models: the machine itself, and the states in which its chart accepts each event. */

import { isFor, nodesOf, takers } from '../../../core/kernel/charts/chart.ts';
import type { ChartNode } from '../../../core/kernel/charts/chart-node.ts';
import type { CompiledSchema } from '../../../core/schema/schema.ts';

export interface MachineDescription {
  /** The name of the machine. */
  readonly name: string;
  readonly chart: ChartNode;
  /** The events that clients may send. */
  readonly events: readonly string[];
}

/** Maximum number of states that a description lists. */
const MAX_STATES = 12;

export function createDescription(said: MachineDescription, description: string | undefined): string {
  const { name, chart } = said;
  const begins = chart.nodes.filter(({ initial }) => initial).map(({ key }) => key);
  const ends = chart.nodes.filter(({ type }) => type === 'final').map(({ key }) => key);
  return [
    ...(description === undefined ? [] : [description]),
    `Creates a new ${name} and returns its handle: pass it to the other ${name} tools. Each answer lists the events that are accepted next.`,
    ...(begins.length > 0
      ? [`It starts in ${list(begins)}${ends.length > 0 ? ` and ends in ${list(ends, 'or')}` : ''}.`]
      : []),
  ].join('\n');
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
