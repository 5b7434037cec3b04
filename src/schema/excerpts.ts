/** Small pieces of text for problems and refusals: quoted, cut to a length, on one line. */
import { describe } from '../protocol/json.ts';

/** Cuts a text to `length` characters; what was cut shows as `…`. */
export function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** A text in double quotes, on one line, at most 60 characters of it. */
export function quote(text: string): string {
  return `"${oneLine(clip(text, 60)).replace(/["\\]/g, '\\$&')}"`;
}

/** Puts a blank in place of control characters and line separators, so that a value cannot add lines to a report. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes.
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}

/** A value as a schema would write it where that is short (`"a"`, `3`, `null`), else what it is. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return describe(value);
}

/** Joins up to ten of many, and says how many were left out. */
export function listWords(items: readonly string[], joint = ', '): string {
  const shown = items.slice(0, 10).join(joint);
  return items.length > 10 ? `${shown} and ${items.length - 10} more` : shown;
}
