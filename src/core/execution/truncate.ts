/** Truncates large data and preserves its shape: the first rows, the start of a text, and every member of an object. */
import { isObject } from '../protocol/json.ts';
import { jsonLength } from './size.ts';

export interface Cut {
  readonly value: unknown;
  /** The remaining part, such as `the first 12 of 5000 rows`; absent if nothing was cut. */
  readonly kept?: string;
}

/** @param max most characters of JSON for the value */
export function truncate(value: unknown, max: number): Cut {
  if (jsonLength(value, max) <= max) return { value };
  if (typeof value === 'string') return cutText(value, max);
  if (Array.isArray(value)) return cutRows(value, max);
  return isObject(value) ? cutMembers(value, max) : { value };
}

function cutText(text: string, max: number): Cut {
  const length = Math.max(0, max - 2);
  return { value: text.slice(0, length), kept: `the first ${length} of ${text.length} characters` };
}

function cutRows(rows: readonly unknown[], max: number): Cut {
  let room = max - 2;
  let count = 0;
  for (const row of rows) {
    room -= jsonLength(row, room) + 1;
    if (room < 0) break;
    count += 1;
  }
  const kept = `the first ${Math.max(count, 1)} of ${rows.length} rows`;
  if (count > 0) return { value: rows.slice(0, count), kept };
  // Not even one row fits: a part of the first row is more useful than nothing.
  const first = truncate(rows[0], Math.max(0, max - 2));
  return { value: [first.value], kept: first.kept === undefined ? kept : `${kept}, and of it ${first.kept}` };
}

/**
 * Truncates the largest member, then the next largest, until the object fits. Removing a member would change the shape.
 */
function cutMembers(object: Readonly<Record<string, unknown>>, max: number): Cut {
  const whole: Record<string, unknown> = { ...object };
  const kept: string[] = [];
  const bySize = Object.entries(object)
    .map(([name, member]) => ({ name, member, length: jsonLength(member) }))
    .sort((a, b) => b.length - a.length);
  let over = jsonLength(object) - max;
  for (const { name, member, length } of bySize) {
    if (over <= 0) break;
    const cut = truncate(member, Math.max(2, length - over));
    if (cut.kept === undefined) continue;
    whole[name] = cut.value;
    kept.push(`of "${name}" ${cut.kept}`);
    over -= length - jsonLength(cut.value);
  }
  if (over <= 0) return { value: whole, kept: kept.join('; ') };
  // No single member can be truncated: keep the first ones.
  const entries = Object.entries(whole);
  let count = entries.length;
  for (; count > 0 && over > 0; count -= 1) over -= jsonLength(Object.fromEntries(entries.slice(count - 1, count))) - 1;
  kept.push(`the first ${count} of ${entries.length} members`);
  return { value: Object.fromEntries(entries.slice(0, count)), kept: kept.join('; ') };
}
