/** The second form of a tool: a class or object with `getName`, `getDefinition`, `validateArguments` and `execute`. */

import { ProtocolError } from '../protocol/errors.ts';
import { describe, isObject } from '../protocol/json.ts';
import type { ToolDefinition } from '../registry/define.ts';
import { DefinitionError } from '../registry/definition-checks.ts';
import { describeTool } from './described-tool.ts';

export interface ToolObject {
  getName(): unknown;
  getDefinition(): unknown;
  /** Absent: the input schema alone decides. */
  validateArguments?(args: unknown): unknown;
  execute(args: unknown, ctx: unknown): unknown;
}

/** Has `getName` and `execute`: it means to be a tool, and is told what else it lacks. */
export function isToolObject(value: unknown): value is ToolObject {
  return isObject(value) && has(value, 'getName') && has(value, 'execute');
}

/** A class whose instances are tools. It is made without arguments. */
export function isToolClass(value: unknown): value is new () => ToolObject {
  return typeof value === 'function' && 'prototype' in value && isToolObject(value.prototype);
}

/** @throws {DefinitionError} for what is missing, or is of the wrong type; and what the object's own methods throw */
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
 * What `validateArguments` says: nothing or true is yes; false, a text or a list of texts is no; an object is the arguments, converted.
 *
 * @throws {Error} for a no: its message becomes a result that the model can read
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
  if (said === false) throw refusal(name, ['the tool refused them without a reason']);
  const problems: readonly unknown[] = Array.isArray(said) ? said : [said];
  if (!problems.every((problem) => typeof problem === 'string'))
    throw new Error(
      `validateArguments of tool "${name}": expected true, false, a text, texts or converted arguments, got ${describe(said)}`,
    );
  if (problems.length === 0) return args;
  throw refusal(name, problems);
}

/** Worded as the refusals of schemas are. */
function refusal(name: string, problems: readonly string[]): Error {
  return new Error([`Invalid arguments for tool "${name}":`, ...problems.map((problem) => `- ${problem}`)].join('\n'));
}

function has(value: object, method: keyof ToolObject): boolean {
  return method in value && typeof Reflect.get(value, method) === 'function';
}
