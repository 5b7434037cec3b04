/** The events of a statechart, and one that a reader has written. */
import type { ChartNode, Plain } from '../../../src/inspector/frames.ts';

/** Those that it names: no patterns, and none of XState's own. */
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

/** @returns the event, or what is wrong with it */
export function eventOf(type: string, data: string): Written | string {
  const members = objectOf(data);
  return typeof members === 'string' ? members : { ...members, type };
}

function isObject(value: Plain): value is { readonly [name: string]: Plain } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object that a reader has written as JSON; nothing is an empty one. @returns the object, or what is wrong with it */
export function objectOf(text: string): { readonly [name: string]: Plain } | string {
  if (text.trim() === '') return {};
  try {
    const value: Plain = JSON.parse(text);
    if (isObject(value)) return value;
    return 'Expected a JSON object, such as {"name": "value"}.';
  } catch (error) {
    return `This is no JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}
