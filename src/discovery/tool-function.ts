/** The third form of a tool: a plain function that carries its schema. */
import { basename, extname } from 'node:path';
import type { ToolDefinition } from '../registry/define.ts';
import { describeTool } from './described-tool.ts';

/** A function with `schema` (or `input`), and what else a definition has: `description`, `title`, `output`, `annotations`… */
export type ToolFunction = ((...args: unknown[]) => unknown) & Readonly<Record<string, unknown>>;

/** A schema of some libraries is a function too, and what is `new`-ed is none. */
export function isToolFunction(value: unknown): value is ToolFunction {
  return (
    typeof value === 'function' &&
    !('~standard' in value) &&
    (('schema' in value && value.schema !== undefined) || ('input' in value && value.input !== undefined)) &&
    !/^class\b/.test(Function.prototype.toString.call(value))
  );
}

/**
 * Its name is `fn.toolName`, or the function's own, or the one that it is exported under; for a default export without a
 * name, the file's.
 *
 * @throws {DefinitionError} for a description, title… of the wrong type
 */
export function toolOfFunction(fn: ToolFunction, exportName: string, path: string): ToolDefinition {
  const { schema, input = schema } = fn;
  const name = fn.toolName ?? ownName(fn) ?? (exportName === 'default' ? basename(path, extname(path)) : exportName);
  return describeTool(name, { ...fn, input }, `function ${exportName}`, (args, ctx) => fn(args, ctx));
}

/** JavaScript calls a function without a name `default` when it is exported so. */
function ownName({ name }: ToolFunction): string | undefined {
  return typeof name === 'string' && name !== '' && name !== 'default' ? name : undefined;
}
