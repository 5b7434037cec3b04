/** The default tool executor: checks the arguments, runs the handler, then formats and checks the result. */

import { isProtocolError } from '../protocol/errors.ts';
import { isThenable, type JsonValue } from '../protocol/json.ts';
import { isToolResult } from '../protocol/result-shape.ts';
import type { CallToolResult } from '../protocol/types.ts';
import { explain } from '../schema/problems.ts';
import type { Checked } from '../schema/schema.ts';
import type { Context } from './context.ts';
import { wasCut } from './envelope.ts';
import type { ToolCall, ToolExecution } from './execution.ts';
import type { ThrownError } from './handler-errors.ts';
import { CannotAsk } from './input-errors.ts';
import { lostData } from './lost-data.ts';
import { failed, toToolResult } from './tool-result.ts';

export interface ToolPolicy {
  /** Maximum number of characters of JSON in envelope data that is sent untruncated. */
  readonly maxResultLength: number;
  /** Logs that a tool violated its own output schema. */
  warn(message: string): void;
  /** Records an error that a handler threw. @returns the text for the model, and the incident in the operator's log */
  thrown(label: string, error: unknown, signal: AbortSignal): ThrownError;
}

/**
 * Invalid arguments and handler errors produce a result that the model can read (`isError`; MCP 2025-11-25 tools,
 * "Error Handling", SEP-1303), never with a stack; {@link HandlerErrors} decides the text. A {@link ProtocolError} stays
 * a protocol error.
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
  policy: ToolPolicy,
): CallToolResult | Promise<CallToolResult> {
  try {
    const { output, relayed } = call.implementation;
    if (relayed && isToolResult(returned)) return returned;
    const result = toToolResult(returned, {
      durationMs: () => ctx.elapsedMs,
      maxResultLength: policy.maxResultLength,
      structured: output !== undefined,
    });
    // A text has nothing to lose.
    if (typeof returned !== 'string') checkPlain(call, result);
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
function conform(
  call: ToolCall,
  result: CallToolResult,
  checked: Checked<unknown>,
  policy: ToolPolicy,
): CallToolResult {
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

function thrown(call: ToolCall, error: unknown, ctx: Context, policy: ToolPolicy): CallToolResult {
  // If the client cannot be asked, the model can still pass the answer as an argument.
  if (isProtocolError(error) && !(error instanceof CannotAsk)) throw error;
  const { text, incident } = policy.thrown(call.implementation.label, error, ctx.signal);
  return failed(text, incident);
}
