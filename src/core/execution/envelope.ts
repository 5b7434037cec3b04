/** The result envelope: one shape for the results of all tools: `data`, `meta`, `error`. */
import { isObject, type JsonObject } from '../protocol/json.ts';
import { copyNumbers } from '../protocol/json-text.ts';
import type { CallToolResult } from '../protocol/types.ts';
import type { AuthorSchema } from '../schema/schema-types.ts';
import { wrapSchema } from '../schema/wrap.ts';
import { jsonLength } from './size.ts';

export interface EnvelopeMeta {
  /** The number of rows before truncation; the length of `data` if it is an array. */
  readonly rowCount?: number;
  /** True if data was left out. */
  readonly truncated?: boolean;
  /** Duration of the call in milliseconds; filled in if absent. */
  readonly durationMs?: number;
  /** The tier, cache or source of the data; any label. */
  readonly tier?: string | number;
  /** A note for the model about the result. If data was left out, the note says so. */
  readonly note?: string;
  readonly [more: string]: unknown;
}

export interface EnvelopeInput<T> {
  readonly data?: T;
  readonly meta?: EnvelopeMeta;
  /** Makes the call fail with a message that the model can act on. */
  readonly error?: string | { readonly message: string; readonly code?: string };
}

const ENVELOPE = Symbol.for('troupe.envelope');

export interface Envelope<T = unknown> extends EnvelopeInput<T> {
  readonly [ENVELOPE]: true;
}

/** The key of the envelope's meta in a result's `_meta`. */
export const ENVELOPE_META = 'dev.troupe/result';

/**
 * Gives a tool's result the common shape of all tools. On the wire it is `structuredContent: { data, meta, error? }`,
 * the same as text, and the meta again in `_meta["dev.troupe/result"]`, for hosts that do not pass structured content
 * to the model.
 * @example return toolResult({ data: rows, meta: { tier: 'cache' } });
 */
export function toolResult<T>(input: EnvelopeInput<T>): Envelope<T> {
  return { ...input, [ENVELOPE]: true };
}

export function isEnvelope(value: unknown): value is Envelope {
  return isObject(value) && ENVELOPE in value;
}

/**
 * The output schema of a tool that returns {@link toolResult}, from the schema of its `data`.
 * @example server.tool('rows', { output: envelopeOf(z.array(Row)) }, () => toolResult({ data: rows }))
 */
export function envelopeOf(data: AuthorSchema): AuthorSchema {
  return wrapSchema(data, 'data', {
    meta: {
      type: 'object',
      properties: {
        rowCount: { type: 'integer' },
        truncated: { type: 'boolean' },
        durationMs: { type: 'number' },
        note: { type: 'string' },
      },
    },
    error: {
      type: 'object',
      properties: { message: { type: 'string' }, code: { type: 'string' } },
      required: ['message'],
    },
  });
}

/**
 * Converts an envelope into a tool result and truncates its data.
 * @param maxLength the longest `data` that is sent untruncated, in characters of JSON
 */
export function sealEnvelope(
  { data, meta = {}, error }: Envelope,
  durationMs: number,
  maxLength: number,
): CallToolResult {
  const cut = truncate(data, maxLength);
  const failure = typeof error === 'string' ? { message: error } : error;
  const rows = Array.isArray(data) ? { rowCount: data.length } : {};
  const full = {
    ...rows,
    truncated: false,
    durationMs: Math.round(durationMs * 100) / 100,
    ...meta,
    ...(cut.kept === undefined
      ? {}
      : {
          truncated: true,
          note: `truncated: ${cut.kept}; at most ${maxLength} characters are sent (maxResultLength). Request less data, or request it in parts`,
        }),
  };
  const structured = {
    ...(cut.value === undefined ? {} : { data: cut.value }),
    meta: full,
    ...(failure ? { error: failure } : {}),
  };
  return {
    content: [],
    structuredContent: structured as JsonObject,
    _meta: { [ENVELOPE_META]: full } as JsonObject,
    ...(failure ? { isError: true } : {}),
  };
}

/** True for the result of a truncated envelope. */
export function wasCut({ _meta: meta }: CallToolResult): boolean {
  const ours = meta?.[ENVELOPE_META];
  return isObject(ours) && ours.truncated === true;
}

export interface CutValue {
  readonly value: unknown;
  /** The remaining part, such as `the first 12 of 5000 rows`; absent if nothing was cut. */
  readonly kept?: string;
}

/**
 * Truncates large data and preserves its shape: the first rows, the start of a text, and every member of an object.
 *
 * @param max most characters of JSON for the value
 */
export function truncate(value: unknown, max: number): CutValue {
  if (jsonLength(value, max) <= max) return { value };
  if (typeof value === 'string') return cutText(value, max);
  if (Array.isArray(value)) return cutRows(value, max);
  return isObject(value) ? cutMembers(value, max) : { value };
}

function cutText(text: string, max: number): CutValue {
  const length = Math.max(0, max - 2);
  return { value: text.slice(0, length), kept: `the first ${length} of ${text.length} characters` };
}

function cutRows(rows: readonly unknown[], max: number): CutValue {
  let room = max - 2;
  let count = 0;
  for (const row of rows) {
    room -= jsonLength(row, room) + 1;
    if (room < 0) break;
    count += 1;
  }
  const kept = `the first ${Math.max(count, 1)} of ${rows.length} rows`;
  if (count > 0) return { value: copyNumbers(rows, rows.slice(0, count)), kept };
  // Not even one row fits: a part of the first row is more useful than nothing.
  const first = truncate(rows[0], Math.max(0, max - 2));
  return { value: [first.value], kept: first.kept === undefined ? kept : `${kept}, and of it ${first.kept}` };
}

/**
 * Truncates the largest member, then the next largest, until the object fits. Removing a member would change the shape.
 */
function cutMembers(object: Readonly<Record<string, unknown>>, max: number): CutValue {
  const whole: Record<string, unknown> = copyNumbers(object, { ...object });
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
  return { value: copyNumbers(object, Object.fromEntries(entries.slice(0, count))), kept: kept.join('; ') };
}
