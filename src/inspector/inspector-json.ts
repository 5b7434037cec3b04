/** JSON as the inspector reads and writes it: what it shows of the wire, what it tells its viewers, and what they send it. */
import type { Plain } from './frames.ts';

/** One line of JSON. */
export function jsonTextOf(value: object | Plain): string {
  return JSON.stringify(value);
}

/** What a text says; undefined for one that is no JSON. */
export function readText(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
