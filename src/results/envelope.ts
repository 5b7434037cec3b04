/** The result envelope: one shape for what every tool returns: `data`, `meta`, `error`. */
import { isObject, type JsonObject } from '../protocol/json.ts';
import type { CallToolResult } from '../protocol/types.ts';
import type { AuthorSchema } from '../schema/schema-types.ts';
import { wrapSchema } from '../schema/wrap.ts';
import { truncate } from './truncate.ts';

export interface EnvelopeMeta {
  /** How many rows there were, before any were left out; the length of `data` when it is an array. */
  readonly rowCount?: number;
  /** Something was left out. */
  readonly truncated?: boolean;
  /** How long the tool took, in milliseconds; filled in when absent. */
  readonly durationMs?: number;
  /** Which tier, cache or source answered; the author's word. */
  readonly tier?: string | number;
  /** What the model needs to know about the result; says so when something was left out. */
  readonly note?: string;
  readonly [more: string]: unknown;
}

export interface EnvelopeInput<T> {
  readonly data?: T;
  readonly meta?: EnvelopeMeta;
  /** Makes the call fail, in words that the model can act on. */
  readonly error?: string | { readonly message: string; readonly code?: string };
}

const ENVELOPE = Symbol.for('troupe.envelope');

export interface Envelope<T = unknown> extends EnvelopeInput<T> {
  readonly [ENVELOPE]: true;
}

/** Where the envelope's meta stands in a result's `_meta`. */
export const ENVELOPE_META = 'dev.troupe/result';

/**
 * Gives a tool's result the shape that all tools share. On the wire it is `structuredContent: { data, meta, error? }`,
 * the same as text, and the meta once more in `_meta["dev.troupe/result"]`, for hosts that keep structured content to themselves.
 *
 * @example return toolResult({ data: rows, meta: { tier: 'cache' } });
 */
export function toolResult<T>(input: EnvelopeInput<T>): Envelope<T> {
  return { ...input, [ENVELOPE]: true };
}

export function isEnvelope(value: unknown): value is Envelope {
  return isObject(value) && ENVELOPE in value;
}

/**
 * The output schema of a tool that answers with {@link toolResult}, from the schema of its `data`.
 *
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
 * Puts an envelope into a tool result, cut to what may be sent.
 *
 * @param maxLength the longest `data` that is sent whole, in characters of JSON
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
          note: `truncated: ${cut.kept}; at most ${maxLength} characters are sent (maxResultLength): ask for less, or in parts`,
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

/** True for the result of an envelope from which something was left out. */
export function wasCut({ _meta: meta }: CallToolResult): boolean {
  const ours = meta?.[ENVELOPE_META];
  return isObject(ours) && ours.truncated === true;
}
