/** JSON as the inspector reads and writes it: wire messages, frames, and requests of viewers. */
import type { Plain } from './frames.ts';

/** One line of JSON. */
export function jsonTextOf(value: object | Plain): string {
  return JSON.stringify(value);
}

/** Parses a text; undefined if it is not JSON. */
export function readText(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
