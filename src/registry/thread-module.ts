/** Finds what a thread loads to run a tool (`cpu`): a handler is a closure and cannot be sent, but the module that it is written in can be loaded again. */
import { fileURLToPath } from 'node:url';
import { describe, isObject } from '../protocol/json.ts';
import type { AnyTool } from './define.ts';
import { DefinitionError } from './definition-checks.ts';

/** Where a thread finds a handler. */
export interface ThreadSource {
  /** The module's path. */
  readonly module: string;
  /** The name of the tool that it exports; undefined where its default export is the handler itself. */
  readonly tool: string | undefined;
}

/** A tool that a module exports with `cpu: true` is found in that module again. */
export function inModule(tool: AnyTool, path: string): AnyTool {
  return tool.cpu === true ? { ...tool, cpu: { module: path, tool: tool.name } } : tool;
}

/** @returns undefined for a tool that runs where it was registered. @throws {DefinitionError} for one whose module is not known */
export function threadSource({ cpu, handler, machine }: AnyTool, label: string): ThreadSource | undefined {
  if (cpu === undefined || cpu === false) return undefined;
  if (machine !== undefined)
    throw new DefinitionError(
      `${label}: cpu: a machine runs no code of its own for long: give its promise actors threads`,
    );
  if (cpu === true)
    throw new DefinitionError(
      `${label}: cpu: expected the URL of a module whose default export is the handler, such as new URL('./heavy.ts', import.meta.url): a handler cannot be sent to a thread (true is for tools that are discovered)`,
    );
  if (!(cpu instanceof URL)) {
    if (isObject(cpu) && typeof cpu.module === 'string') return cpu;
    throw new DefinitionError(`${label}: cpu: expected the URL of a module, got ${describe(cpu)}`);
  }
  if (cpu.protocol !== 'file:')
    throw new DefinitionError(`${label}: cpu: expected the URL of a file, got ${cpu.href.slice(0, 80)}`);
  if (handler !== undefined)
    throw new DefinitionError(
      `${label}: cpu: expected no handler beside it: the module's default export is the handler`,
    );
  return { module: fileURLToPath(cpu), tool: undefined };
}
