/** How tools run unless an author says otherwise: check the arguments, run the handler, shape and check what it returns. */

import type { Context } from '../input/context.ts';
import { CannotAsk } from '../input/input-errors.ts';
import { isProtocolError } from '../protocol/errors.ts';
import type { JsonValue } from '../protocol/json.ts';
import { messageOf } from '../protocol/json.ts';
import { isThenable } from '../protocol/thenable.ts';
import type { CallToolResult } from '../protocol/types.ts';
import { wasCut } from '../results/envelope.ts';
import { failed, toToolResult } from '../results/tool-result.ts';
import { explain } from '../schema/problems.ts';
import type { Checked } from '../schema/schema.ts';
import type { ToolCall, ToolExecution } from './execution.ts';

export interface ToolPolicy {
  /** The longest envelope data that is sent whole, in characters of JSON. */
  readonly maxResultLength: number;
  /** Tells the operator that a tool broke its own output schema. */
  warn(message: string): void;
}

/**
 * Arguments that do not fit, and a handler that throws, give a result that the model can read (`isError`; MCP 2025-11-25
 * tools, "Error Handling", SEP-1303); the message only, never a stack. A {@link ProtocolError} stays an error.
 */
export function toolExecution(policy: ToolPolicy): ToolExecution {
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
  policy: ToolPolicy,
): CallToolResult | Promise<CallToolResult> {
  if (!checked.ok) return failed(explain(checked.problems, `arguments for tool "${call.tool.name}"`));
  let returned: unknown;
  try {
    returned = call.implementation.handler(checked.value, ctx);
  } catch (error) {
    return thrown(error);
  }
  if (isThenable(returned)) return Promise.resolve(returned).then((value) => shaped(call, value, ctx, policy), thrown);
  return shaped(call, returned, ctx, policy);
}

/** A result that cannot be made of what came back is the tool's failure, and so a result too. */
function shaped(
  call: ToolCall,
  returned: unknown,
  ctx: Context,
  policy: ToolPolicy,
): CallToolResult | Promise<CallToolResult> {
  try {
    return finish(call, returned, ctx, policy);
  } catch (error) {
    policy.warn(`the result of tool "${call.tool.name}" cannot be sent: ${messageOf(error)}`);
    return thrown(error);
  }
}

function finish(
  call: ToolCall,
  returned: unknown,
  ctx: Context,
  policy: ToolPolicy,
): CallToolResult | Promise<CallToolResult> {
  const { output } = call.implementation;
  const result = toToolResult(returned, {
    durationMs: () => ctx.elapsedMs,
    maxResultLength: policy.maxResultLength,
    structured: output !== undefined,
  });
  if (!output || result.isError) return result;
  const checked = output.check(result.structuredContent);
  return isThenable(checked)
    ? checked.then((value) => conform(call, result, value, policy))
    : conform(call, result, checked, policy);
}

/** Servers must give structured results that conform to the output schema (MCP tools, "Output Schema"): a tool that does not has failed. */
function conform(
  call: ToolCall,
  result: CallToolResult,
  checked: Checked<unknown>,
  policy: ToolPolicy,
): CallToolResult {
  // What the check gave back is what the schema promises: without members that it does not know, with its defaults.
  if (checked.ok) return { ...result, structuredContent: checked.value as JsonValue };
  if (wasCut(result))
    return failed(`The result of tool "${call.tool.name}" is too large to send: ask for less, or in parts.`);
  const message = explain(
    checked.problems,
    `result of tool "${call.tool.name}" (it does not fit the tool's own output schema)`,
  );
  policy.warn(message);
  return failed(message);
}

function thrown(error: unknown): CallToolResult {
  // The model can do something about what nobody can be asked for: say it in its arguments.
  if (isProtocolError(error) && !(error instanceof CannotAsk)) throw error;
  return failed(messageOf(error));
}
