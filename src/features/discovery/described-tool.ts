/** Builds a tool definition from members of unknown type. Rejects what would otherwise fail later, at a client. */
import { describe, isObject, type JsonObject } from '../../core/protocol/json.ts';
import type { Icon, ToolAnnotations } from '../../core/protocol/types.ts';
import type { ToolDefinition, ToolHandler } from '../../core/registry/define.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import type { AuthorSchema } from '../../core/schema/schema-types.ts';

/**
 * Builds a tool definition.
 * @param about `description`, `title`, `input` or `inputSchema`, `output` or `outputSchema`, `annotations`, `icons`,
 *   `meta` or `_meta`, `timeoutMs`
 * @param where begins every error message
 * @throws {DefinitionError} if a member has the wrong type
 */
export function describeTool(
  name: unknown,
  about: Readonly<Record<string, unknown>>,
  where: string,
  handler: ToolHandler<undefined>,
): ToolDefinition {
  if (typeof name !== 'string') throw new DefinitionError(`${where}: name: expected a string, got ${describe(name)}`);
  const take = <T>(keys: readonly string[], expected: string, fits: (value: unknown) => value is T): T | undefined => {
    const key = keys.find((candidate) => about[candidate] !== undefined);
    if (key === undefined) return undefined;
    const value = about[key];
    if (!fits(value)) throw new DefinitionError(`${where}: ${key}: expected ${expected}, got ${describe(value)}`);
    return value;
  };
  const description = take(['description'], 'a string', isString);
  const title = take(['title'], 'a string', isString);
  const input = take(['input', 'inputSchema'], 'a schema', isSchema);
  const output = take(['output', 'outputSchema'], 'a schema', isSchema);
  const annotations = take(['annotations'], 'an object', isAnnotations);
  const icons = take(['icons'], 'an array', isIcons);
  const meta = take(['meta', '_meta'], 'an object', isMeta);
  const timeoutMs = take(['timeoutMs'], 'milliseconds', isNumber);
  return {
    name,
    handler,
    ...(description === undefined ? {} : { description }),
    ...(title === undefined ? {} : { title }),
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(icons === undefined ? {} : { icons }),
    ...(meta === undefined ? {} : { meta }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

const isString = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';
/** True for an object or a function: some libraries' schemas are functions. The schema compiler judges the rest. */
const isSchema = (value: unknown): value is AuthorSchema => isObject(value) || typeof value === 'function';
const isAnnotations = (value: unknown): value is ToolAnnotations => isObject(value);
const isIcons = (value: unknown): value is readonly Icon[] => Array.isArray(value);
const isMeta = (value: unknown): value is JsonObject => isObject(value);
