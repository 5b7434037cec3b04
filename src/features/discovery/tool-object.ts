/** The second form of a tool: a class or object with `getName`, `getDefinition`, `validateArguments` and `execute`. */

import { ProtocolError } from '../../core/protocol/errors.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import type { ToolDefinition } from '../../core/registry/define.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { describeTool } from './described-tool.ts';

interface ToolObject {
  getName(): unknown;
  getDefinition(): unknown;
  /** If absent, the input schema alone decides. */
  validateArguments?(args: unknown): unknown;
  execute(args: unknown, ctx: unknown): unknown;
}

/**
 * True for an object with `getName` and `execute`. It is meant to be a tool; `toolOfObject` rejects it if anything else
 * is missing.
 */
export function isToolObject(value: unknown): value is ToolObject {
  return isObject(value) && has(value, 'getName') && has(value, 'execute');
}

/** True for a class whose instances are tools. The class is instantiated without arguments. */
export function isToolClass(value: unknown): value is new () => ToolObject {
  return typeof value === 'function' && 'prototype' in value && isToolObject(value.prototype);
}

/**
 * @throws {DefinitionError} if a member is missing or has the wrong type; errors of the object's own methods pass
 *   through
 */
export async function toolOfObject(tool: ToolObject, exportName: string): Promise<ToolDefinition> {
  if (!has(tool, 'getDefinition'))
    throw new DefinitionError(
      `${exportName} has getName and execute, but no getDefinition: add one that returns { description, inputSchema }`,
    );
  const name = await tool.getName();
  const definition = (await tool.getDefinition()) ?? {};
  if (!isObject(definition))
    throw new DefinitionError(`${exportName}.getDefinition: expected an object, got ${describe(definition)}`);
  return describeTool(name, definition, exportName, async (args, ctx) =>
    tool.execute(await validate(tool, args, String(name)), ctx),
  );
}

/**
 * Interprets the result of `validateArguments`. Nothing or true: valid. False, a text or a list of texts: invalid. An
 * object: the converted arguments.
 * @throws {Error} if invalid; its message becomes a result that the model can read
 */
async function validate(tool: ToolObject, args: unknown, name: string): Promise<unknown> {
  let said: unknown;
  try {
    said = await tool.validateArguments?.(args);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw refusal(name, [error instanceof Error ? error.message : String(error)]);
  }
  if (said === undefined || said === null || said === true) return args;
  if (isObject(said)) return said;
  if (said === false) throw refusal(name, ['the tool rejected them without a reason']);
  const problems: readonly unknown[] = Array.isArray(said) ? said : [said];
  if (!problems.every((problem) => typeof problem === 'string'))
    throw new Error(
      `validateArguments of tool "${name}": expected true, false, a text, texts or converted arguments, got ${describe(said)}`,
    );
  if (problems.length === 0) return args;
  throw refusal(name, problems);
}

/** Uses the wording of schema errors. */
function refusal(name: string, problems: readonly string[]): Error {
  return new Error([`Invalid arguments for tool "${name}":`, ...problems.map((problem) => `- ${problem}`)].join('\n'));
}

function has(value: object, method: keyof ToolObject): boolean {
  return method in value && typeof Reflect.get(value, method) === 'function';
}
