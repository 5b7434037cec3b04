/** The third form of a tool: a plain function with a schema. */
import { basename, extname } from 'node:path';
import type { ToolDefinition } from '../../core/registry/define.ts';
import { describeTool } from './described-tool.ts';

/**
 * A function with `schema` (or `input`) and, optionally, other members of a definition: `description`, `title`,
 * `output`, `annotations`…
 */
type ToolFunction = ((...args: unknown[]) => unknown) & Readonly<Record<string, unknown>>;

/** Excludes schemas that are functions, and classes. */
export function isToolFunction(value: unknown): value is ToolFunction {
  return (
    typeof value === 'function' &&
    !('~standard' in value) &&
    (('schema' in value && value.schema !== undefined) || ('input' in value && value.input !== undefined)) &&
    !/^class\b/.test(Function.prototype.toString.call(value))
  );
}

/**
 * Builds the definition. The name is `fn.toolName`, else the function's own name, else the name of the export, else
 * (default export) the file's name.
 * @throws {DefinitionError} if a member such as `description` or `title` has the wrong type
 */
export function toolOfFunction(fn: ToolFunction, exportName: string, path: string): ToolDefinition {
  const { schema, input = schema } = fn;
  const name = fn.toolName ?? ownName(fn) ?? (exportName === 'default' ? basename(path, extname(path)) : exportName);
  return describeTool(name, { ...fn, input }, `function ${exportName}`, (args, ctx) => fn(args, ctx));
}

/** The function's own name. JavaScript names an anonymous default export `default`; that name is ignored. */
function ownName({ name }: ToolFunction): string | undefined {
  return typeof name === 'string' && name !== '' && name !== 'default' ? name : undefined;
}
