/** The default prompt executor: checks the arguments, runs the handler and formats its result. */
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { describe, isObject, type JsonObject } from '../protocol/json.ts';
import type { GetPromptResult, PromptMessage } from '../protocol/types.ts';
import { explain } from '../schema/problems.ts';
import { isContentBlock, sentBlock } from './content.ts';
import type { Context } from './context.ts';
import type { PromptCall } from './execution.ts';

/**
 * A handler returns a string or content block (one user message), a list of messages, or `{ messages }` as on the wire.
 */
export async function executePrompt(call: PromptCall, ctx: Context): Promise<GetPromptResult> {
  const { input } = call.implementation;
  const checked = await input?.check(read(call.arguments, input.json));
  // For prompts, missing or wrong arguments are a protocol error (MCP prompts, "Error Handling"): no model reads
  // the result.
  if (checked && !checked.ok)
    throw new ProtocolError(
      ErrorCode.InvalidParams,
      explain(checked.problems, `arguments for prompt "${call.prompt.name}"`),
    );
  return toPromptResult(await call.implementation.handler(checked ? checked.value : call.arguments, ctx), call);
}

/**
 * Converts arguments. On the wire every argument is a string; where the schema requires a number or boolean, the string
 * is parsed.
 */
function read(args: Readonly<Record<string, string>>, { properties }: JsonObject): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = { ...args };
  for (const [name, text] of Object.entries(args)) {
    const property = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
    const type = isObject(property) ? property.type : undefined;
    if ((type === 'number' || type === 'integer') && text.trim() !== '' && Number.isFinite(Number(text)))
      values[name] = Number(text);
    if (type === 'boolean' && (text === 'true' || text === 'false')) values[name] = text === 'true';
  }
  return values;
}

function toPromptResult(returned: unknown, { prompt, implementation }: PromptCall): GetPromptResult {
  if (implementation.relayed && hasMessages(returned)) return returned;
  const described = prompt.description === undefined ? {} : { description: prompt.description };
  if (typeof returned === 'string')
    return { ...described, messages: [{ role: 'user', content: { type: 'text', text: returned } }] };
  if (isContentBlock(returned)) return { ...described, messages: [{ role: 'user', content: sentBlock(returned) }] };
  if (isMessages(returned)) return { ...described, messages: returned.map(sentMessage) };
  if (isObject(returned) && isMessages(returned.messages))
    return { ...described, ...returned, messages: returned.messages.map(sentMessage) };
  const messages: unknown = isObject(returned) ? (returned.messages ?? returned) : returned;
  const roles = Array.isArray(messages) ? messages.flatMap((item) => (isObject(item) ? [item.role] : [])) : [];
  const other = roles.find((role) => role !== 'user' && role !== 'assistant');
  throw new TypeError(
    `prompt "${prompt.name}": expected the handler to return a string, a content block, or messages ({ role, content }) of the role "user" or "assistant", got ${other === undefined ? describe(returned) : `the role ${describe(other)}`}`,
  );
}

/** Recognizes the result of another server by its outer shape: its members are not checked. */
function hasMessages(value: unknown): value is GetPromptResult {
  return isObject(value) && Array.isArray(value.messages);
}

export function sentMessage(message: PromptMessage): PromptMessage {
  return { ...message, content: sentBlock(message.content) };
}

export function isMessages(value: unknown): value is readonly PromptMessage[] {
  return (
    Array.isArray(value) &&
    value.every(
      (item) => isObject(item) && (item.role === 'user' || item.role === 'assistant') && isContentBlock(item.content),
    )
  );
}
