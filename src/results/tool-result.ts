/** Turns whatever a tool's handler returned into a tool result. */
import { describe, isObject, type JsonValue } from '../protocol/json.ts';
import type { CallToolResult } from '../protocol/types.ts';
import { isContentBlock } from './content.ts';
import { isEnvelope, sealEnvelope } from './envelope.ts';

export interface ResultPolicy {
  /** How long the handler took, in milliseconds. */
  durationMs(): number;
  /** The longest envelope data that is sent whole, in characters of JSON. */
  readonly maxResultLength: number;
  /** The tool has an output schema: what is no content is data, a string too. */
  readonly structured: boolean;
}

/**
 * A string becomes text, content blocks stay as they are, a whole result too, {@link isEnvelope} is sealed, and anything
 * else is data: `structuredContent`, and the same as text.
 *
 * @throws {TypeError} for what JSON cannot say, such as a function
 */
export function toToolResult(returned: unknown, policy: ResultPolicy): CallToolResult {
  if (returned === undefined) return { content: [] };
  if (isEnvelope(returned)) return sealEnvelope(returned, policy.durationMs(), policy.maxResultLength);
  if (typeof returned === 'string' && !policy.structured) return { content: [{ type: 'text', text: returned }] };
  if (isContentBlock(returned)) return { content: [returned] };
  if (Array.isArray(returned) && returned.length > 0 && returned.every(isContentBlock)) return { content: returned };
  if (isWholeResult(returned))
    return returned.content ? { ...returned, content: returned.content } : { ...returned, content: [] };
  if (returned instanceof Map || returned instanceof Set)
    throw new TypeError(
      'a tool returned a Map or a Set, which JSON cannot say: use Object.fromEntries(map) or [...set]',
    );
  const data = dataOf(returned);
  if (data === null && !policy.structured) return { content: [] };
  if (typeof data === 'string' && !policy.structured) return { content: [{ type: 'text', text: data }] };
  if (!isJson(data))
    throw new TypeError(
      `a tool returns a string, data, content blocks or a result; this one returned ${describe(returned)}`,
    );
  return { content: [], structuredContent: data };
}

/** What JSON would write for it: a Date is no object then, and is neither checked nor shown as one. */
function dataOf(returned: unknown): unknown {
  if (!isObject(returned) || typeof returned.toJSON !== 'function') return returned;
  return Reflect.apply(returned.toJSON, returned, ['']);
}

/** A failure that the model can read (MCP tools, "Error Handling": tool execution errors). */
export function failed(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true };
}

const RESULT_MEMBERS = new Set(['content', 'structuredContent', 'isError', '_meta']);

function isWholeResult(
  value: unknown,
): value is Omit<CallToolResult, 'content'> & { readonly content?: CallToolResult['content'] } {
  if (!isObject(value)) return false;
  const { content } = value;
  if (Array.isArray(content))
    return content.every(isContentBlock) && Object.keys(value).every((key) => RESULT_MEMBERS.has(key));
  return (
    content === undefined && 'structuredContent' in value && Object.keys(value).every((key) => RESULT_MEMBERS.has(key))
  );
}

/** Data as far as can be told without walking it; what hides deeper is found when it is written. */
function isJson(value: unknown): value is JsonValue {
  return value === null || ['object', 'string', 'number', 'boolean'].includes(typeof value);
}
