/** Converts the return value of a tool's handler into a tool result. */
import { describe, isObject, type JsonValue } from '../protocol/json.ts';
import type { CallToolResult } from '../protocol/types.ts';
import { isContentBlock, sentBlock } from './content.ts';
import { isEnvelope, sealEnvelope } from './envelope.ts';

export interface ResultPolicy {
  /** Duration of the handler in milliseconds. */
  durationMs(): number;
  /** The longest envelope data that is sent untruncated, in characters of JSON. */
  readonly maxResultLength: number;
  /** True if the tool has an output schema: every value that is not content is then data, including strings. */
  readonly structured: boolean;
}

/**
 * A string becomes text. Content blocks and complete results stay as they are. {@link isEnvelope} values are sealed.
 * Anything else is data: `structuredContent`, and the same as text.
 * @throws {TypeError} if the value is not JSON, such as a function, or the data of an image is not base64
 */
export function toToolResult(returned: unknown, policy: ResultPolicy): CallToolResult {
  if (returned === undefined) return { content: [] };
  if (typeof returned === 'string' && !policy.structured) return { content: [{ type: 'text', text: returned }] };
  if (isEnvelope(returned)) return sealEnvelope(returned, policy.durationMs(), policy.maxResultLength);
  if (isContentBlock(returned)) return { content: [sentBlock(returned)] };
  if (Array.isArray(returned) && returned.length > 0 && returned.every(isContentBlock))
    return { content: returned.map(sentBlock) };
  if (isWholeResult(returned)) return { ...returned, content: returned.content?.map(sentBlock) ?? [] };
  const data = dataOf(returned);
  if (data === null && !policy.structured) return { content: [] };
  if (typeof data === 'string' && !policy.structured) return { content: [{ type: 'text', text: data }] };
  if (!isJson(data))
    throw new TypeError(
      `expected the tool to return a string, data, content blocks or a result, got ${describe(returned)}`,
    );
  return { content: [], structuredContent: data };
}

/** The value that JSON would contain: a Date, for example, is a string and must not be checked as an object. */
function dataOf(returned: unknown): unknown {
  if (!isObject(returned) || typeof returned.toJSON !== 'function') return returned;
  return Reflect.apply(returned.toJSON, returned, ['']);
}

/** The incidents of results, which the audit log records and no client receives. */
const INCIDENTS = new WeakMap<object, string>();

/**
 * An error result that the model can read (MCP tools, "Error Handling": tool execution errors).
 *
 * @param incident the id under which the error is in the operator's log
 */
export function failed(message: string, incident?: string): CallToolResult {
  const result: CallToolResult = { content: [{ type: 'text', text: message }], isError: true };
  if (incident !== undefined) INCIDENTS.set(result, incident);
  return result;
}

/** The incident of a result of {@link failed}; undefined for any other result. */
export function incidentOf(result: object): string | undefined {
  return INCIDENTS.get(result);
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

/** Checks the top level only; serialization finds invalid values below. */
function isJson(value: unknown): value is JsonValue {
  return value === null || ['object', 'string', 'number', 'boolean'].includes(typeof value);
}
