/**
 * Locates the module that a thread loads to run a `cpu` tool. A handler is a closure and cannot be sent to a thread,
 * but its module can be loaded there.
 */
import { fileURLToPath } from 'node:url';
import { describe, isObject } from '../protocol/json.ts';
import type { AnyTool, ThreadSource } from './define.ts';
import { DefinitionError } from './definition-checks.ts';

/** Records the module of a discovered tool with `cpu: true`, so that a thread can find the tool there. */
export function inModule(tool: AnyTool, path: string): AnyTool {
  return tool.cpu === true ? { ...tool, cpu: { module: path, tool: tool.name } } : tool;
}

/** @returns undefined for a tool that runs in this thread. @throws {DefinitionError} if the tool's module is unknown */
export function threadSource({ cpu, handler, machine }: AnyTool, label: string): ThreadSource | undefined {
  if (cpu === undefined || cpu === false) return undefined;
  if (machine !== undefined)
    throw new DefinitionError(
      `${label}: cpu: expected no machine, which runs no long computation of its own: run its promise actors in threads`,
    );
  if (cpu === true)
    throw new DefinitionError(
      `${label}: cpu: expected the URL of a module whose default export is the handler, such as new URL('./heavy.ts', import.meta.url). A handler cannot be sent to a thread; true works only for discovered tools`,
    );
  if (!(cpu instanceof URL)) {
    if (isObject(cpu) && typeof cpu.module === 'string') return cpu;
    throw new DefinitionError(`${label}: cpu: expected the URL of a module, got ${describe(cpu)}`);
  }
  if (cpu.protocol !== 'file:')
    throw new DefinitionError(`${label}: cpu: expected the URL of a file, got ${cpu.href.slice(0, 80)}`);
  if (handler !== undefined)
    throw new DefinitionError(
      `${label}: cpu: expected no "handler" with a module URL: the module's default export is the handler`,
    );
  return { module: fileURLToPath(cpu), tool: undefined };
}
