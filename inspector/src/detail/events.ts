/** The events of a statechart, and an event that a reader enters. */
import type { ChartNode, Plain } from '../../../src/inspector/frames.ts';

/** The named events: no patterns, and no XState-internal ones. */
export function eventsOf(chart: ChartNode): readonly string[] {
  const types = new Set<string>();
  const walk = ({ edges, nodes }: ChartNode): void => {
    for (const { on } of edges) if (on !== '' && !on.includes('*') && !on.startsWith('xstate.')) types.add(on);
    for (const node of nodes) walk(node);
  };
  walk(chart);
  return [...types];
}

export type Written = { readonly type: string } & { readonly [name: string]: Plain };

/** @returns the event, or an error text */
export function eventOf(type: string, data: string): Written | string {
  const members = objectOf(data);
  return typeof members === 'string' ? members : { ...members, type };
}

function isObject(value: Plain): value is { readonly [name: string]: Plain } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object that a reader entered as JSON; an empty text is an empty object. @returns the object, or an error text */
export function objectOf(text: string): { readonly [name: string]: Plain } | string {
  if (text.trim() === '') return {};
  try {
    const value: Plain = JSON.parse(text);
    if (isObject(value)) return value;
    return 'Expected a JSON object, such as {"name": "value"}.';
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}
