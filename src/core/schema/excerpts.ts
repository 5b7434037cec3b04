/** Formats short excerpts of values for error messages: quoted, shortened, on one line. */
import { describe } from '../protocol/json.ts';

/** Shortens a text to `length` characters; `…` marks the cut. */
export function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** The first 60 characters of a text in double quotes, on one line. */
export function quote(text: string): string {
  return `"${oneLine(clip(text, 60)).replace(/["\\]/g, '\\$&')}"`;
}

/** Replaces control characters and line separators by a blank, so that a value cannot add lines to a report. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes.
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}

/** The value in JSON if that is short (`"a"`, `3`, `null`), otherwise a description of it. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return describe(value);
}

/** Joins the first ten items and counts the rest. */
export function listWords(items: readonly string[], joint = ', '): string {
  const shown = items.slice(0, 10).join(joint);
  return items.length > 10 ? `${shown} and ${items.length - 10} more` : shown;
}
