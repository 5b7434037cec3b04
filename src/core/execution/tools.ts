/** The default tool executor: checks the arguments, runs the handler, then formats and checks the result. */

import { isProtocolError } from '../protocol/errors.ts';
import { describe, isObject, isThenable, type JsonValue } from '../protocol/json.ts';
import { isToolResult } from '../protocol/result-shape.ts';
import type { CallToolResult } from '../protocol/types.ts';
import { turnAway } from '../requests/active-request.ts';
import { explain } from '../schema/problems.ts';
import type { Checked } from '../schema/schema.ts';
import { NotApproved } from './approving.ts';
import { isContentBlock, sentBlock } from './content.ts';
import type { Context } from './context.ts';
import { isEnvelope, sealEnvelope, wasCut } from './envelope.ts';
import type { ToolCall, ToolExecution } from './execution.ts';
import { isInstance, type ThrownError } from './handler-errors.ts';
import { CannotAsk } from './input-errors.ts';
import { lostData } from './lost-data.ts';
import { requestContextOf } from './request-context.ts';
import { MAX_LOOKED, SilentMistakes } from './silent-mistakes.ts';
import { failed } from './tool-result.ts';
import { explainArguments } from './wrong-arguments.ts';

export interface ToolPolicy {
  /** Maximum number of characters of JSON in envelope data that is sent untruncated. */
  readonly maxResultLength: number;
  /** Logs that a tool violated its own output schema. */
  warn(message: string): void;
  /** Records an error that a handler threw. @returns the text for the model, and the incident in the operator's log */
  thrown(label: string, error: unknown, signal: AbortSignal): ThrownError;
}

interface RunPolicy extends ToolPolicy {
  readonly mistakes: SilentMistakes;
}

/**
 * Invalid arguments and handler errors produce a result that the model can read (`isError`; MCP 2025-11-25 tools,
 * "Error Handling", SEP-1303), never with a stack; {@link HandlerErrors} decides the text. A {@link ProtocolError} stays
 * a protocol error.
 */
export function toolExecution(options: ToolPolicy): ToolExecution {
  const policy: RunPolicy = { ...options, mistakes: new SilentMistakes((message) => options.warn(message)) };
  return {
    execute(call, ctx) {
      const checked = call.implementation.input.check(call.arguments);
      return isThenable(checked)
        ? checked.then((value) => run(call, value, ctx, policy))
        : run(call, checked, ctx, policy);
    },
  };
}

function run(
  call: ToolCall,
  checked: Checked<unknown>,
  ctx: Context,
  policy: RunPolicy,
): CallToolResult | Promise<CallToolResult> {
  if (!checked.ok) return failed(explainArguments(call.tool, call.arguments, checked.problems));
  let returned: unknown;
  try {
    returned = call.implementation.handler(checked.value, ctx);
  } catch (error) {
    return thrown(call, error, ctx, policy);
  }
  if (isThenable(returned))
    return Promise.resolve(returned).then(
      (value) => shaped(call, value, ctx, policy),
      (error: unknown) => thrown(call, error, ctx, policy),
    );
  return shaped(call, returned, ctx, policy);
}

/** Formats what the handler returned. If that is impossible, the tool has failed: the result says so. */
function shaped(
  call: ToolCall,
  returned: unknown,
  ctx: Context,
  policy: RunPolicy,
): CallToolResult | Promise<CallToolResult> {
  try {
    const { implementation } = call;
    const { output, relayed } = implementation;
    const { mistakes } = policy;
    const looks = (mistakes.looked.get(implementation) ?? 0) < MAX_LOOKED;
    // The most common result. Nothing of a text can be lost, and it needs no clock.
    if (typeof returned === 'string' && !output) {
      const result: CallToolResult = { content: [{ type: 'text', text: returned }] };
      if (looks) mistakes.look(call, returned, result, ctx);
      return result;
    }
    if (relayed && isToolResult(returned)) return returned;
    const result = toToolResult(returned, {
      durationMs: () => ctx.elapsedMs,
      maxResultLength: policy.maxResultLength,
      structured: output !== undefined,
    });
    if (typeof returned !== 'string') checkPlain(call, result);
    if (looks) mistakes.look(call, returned, result, ctx);
    if (!output || result.isError) return result;
    const checked = output.check(result.structuredContent);
    return isThenable(checked)
      ? checked.then((value) => conform(call, result, value, policy))
      : conform(call, result, checked, policy);
  } catch (error) {
    return thrown(call, error, ctx, policy);
  }
}

/** @throws {TypeError} for a result of which JSON would lose a part */
function checkPlain({ tool }: ToolCall, result: CallToolResult): void {
  const lost = lostData(result, 'result');
  if (lost !== undefined) throw new TypeError(`tool "${tool.name}": ${lost}`);
}

/**
 * Checks the structured result. Servers must return results that conform to the output schema (MCP tools, "Output
 * Schema"), so a result that does not fit is a failure of the tool.
 */
function conform(call: ToolCall, result: CallToolResult, checked: Checked<unknown>, policy: RunPolicy): CallToolResult {
  // Send the checked value: it has the schema's defaults, and no members that the schema does not define.
  if (checked.ok) return { ...result, structuredContent: checked.value as JsonValue };
  if (wasCut(result))
    return failed(
      `The result of tool "${call.tool.name}" is too large to send. Request less data, or request it in parts.`,
    );
  const message = explain(
    checked.problems,
    `result of tool "${call.tool.name}" (it does not fit the tool's own output schema)`,
  );
  policy.warn(message);
  return failed(message);
}

function thrown(call: ToolCall, error: unknown, ctx: Context, policy: RunPolicy): CallToolResult {
  // If the client cannot be asked, the model can still pass the answer as an argument.
  if (isProtocolError(error) && !(error instanceof CannotAsk)) throw error;
  if (isInstance(error, NotApproved)) {
    // The call may come again with the same key, and then runs.
    const { first, current } = requestContextOf(ctx);
    turnAway(first);
    turnAway(current);
    return error.result;
  }
  const { text, incident } = policy.thrown(call.implementation.label, error, ctx.signal);
  return failed(text, incident);
}

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
  if (!policy.structured) {
    const problem = problemOfResult(returned);
    if (problem !== undefined) throw new TypeError(problem);
  }
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
  // The `toJSON` of a Buffer lists its bytes as numbers.
  if (!isObject(returned) || typeof returned.toJSON !== 'function' || returned instanceof Uint8Array) return returned;
  return Reflect.apply(returned.toJSON, returned, ['']);
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

/** Describes the fault of a value that resembles a whole result and is none. As data, it would be a success by mistake. */
function problemOfResult(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const other = Object.keys(value).find((key) => !RESULT_MEMBERS.has(key));
  if (value.isError === true)
    return other === undefined && value.content === undefined
      ? 'expected "content" beside "isError", such as [text(message)]. Or throw a ToolError(message)'
      : other === undefined
        ? problemOfContent(value.content)
        : `expected only "content", "structuredContent" and "_meta" beside "isError", got "${other}". Or throw a ToolError(message)`;
  return other === undefined ? problemOfContent(value.content) : undefined;
}

/** Describes the fault in the blocks of a whole result; undefined for other lists, which are data. */
function problemOfContent(content: unknown): string | undefined {
  if (!Array.isArray(content) || !content.every((block) => isObject(block) && typeof block.type === 'string'))
    return undefined;
  const wrong = content.findIndex((block) => !isContentBlock(block));
  if (wrong === -1) return undefined;
  return `content[${wrong}]: expected a block such as text(…), image(…), audio(…), link(…) or embedded(…), got the type "${content[wrong].type}" with ${
    Object.keys(content[wrong])
      .filter((key) => key !== 'type')
      .join(', ') || 'nothing'
  }`;
}

/** Checks the top level only; serialization finds invalid values below. */
function isJson(value: unknown): value is JsonValue {
  return value === null || ['object', 'string', 'number', 'boolean'].includes(typeof value);
}
