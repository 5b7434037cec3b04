/** Reads JSON values and compares two of them. */
import type { Plain } from '../frames.ts';

export function isRecord(value: Plain | undefined): value is { readonly [key: string]: Plain } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isList(value: Plain | undefined): value is readonly Plain[] {
  return Array.isArray(value);
}

/** A member of an object; undefined if there is none. */
export function member(value: Plain | undefined, ...names: readonly string[]): Plain | undefined {
  let inner = value;
  for (const name of names) {
    if (!isRecord(inner) || !Object.hasOwn(inner, name)) return undefined;
    inner = inner[name];
  }
  return inner;
}

export function textOfValue(value: Plain | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** One difference between two values. */
export interface Difference {
  /** Such as `items.0.sku`; empty for the whole value. */
  readonly path: string;
  /** Absent: it did not exist before. */
  readonly before?: Plain;
  /** Absent: it was removed. */
  readonly after?: Plain;
}

/** Maximum number of reported differences. */
const MOST = 200;

export function differences(before: Plain | undefined, after: Plain | undefined): readonly Difference[] {
  const found: Difference[] = [];
  compare(before, after, '', found);
  return found;
}

function compare(before: Plain | undefined, after: Plain | undefined, path: string, found: Difference[]): void {
  if (before === after || found.length >= MOST) return;
  if ((isRecord(before) && isRecord(after)) || (isList(before) && isList(after))) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      compare(inside(before, key), inside(after, key), path === '' ? key : `${path}.${key}`, found);
    return;
  }
  found.push({ path, ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) });
}

function inside(value: Plain, key: string): Plain | undefined {
  if (isList(value)) return value[Number(key)];
  return member(value, key);
}
