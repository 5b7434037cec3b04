/** Reads what a module offers from its exports: the three forms in which a tool may be written, and machines, resources and prompts. */

import type { AnyMachine } from '../handles/define-machine.ts';
import { type AnyPrompt, type AnyTool, definedKind, type ResourceDefinition } from '../registry/define.ts';
import { DefinitionError } from '../registry/definition-checks.ts';
import { inModule } from '../registry/thread-module.ts';
import type { Exports } from './load-module.ts';
import { isToolFunction, toolOfFunction } from './tool-function.ts';
import { isToolClass, isToolObject, toolOfObject } from './tool-object.ts';

/** The definitions that one source offers. */
export interface Offers {
  readonly tools: readonly AnyTool[];
  readonly machines: readonly AnyMachine[];
  readonly resources: readonly ResourceDefinition[];
  readonly prompts: readonly AnyPrompt[];
}

export const NOTHING: Offers = { tools: [], machines: [], resources: [], prompts: [] };

/** A module exports nothing that could be offered. */
export class NothingOffered extends DefinitionError {}

/**
 * Reads a module's offers: the default export first, then the named ones by name. The same value under two names counts once.
 *
 * @param path the module's, for the name of a tool that has no other
 * @throws {NothingOffered} with what the module could export
 * @throws {DefinitionError} for an export that is nearly a tool, with what it lacks
 */
export async function readExports(exports: Exports, path: string): Promise<Offers> {
  const offers = { tools: [], machines: [], resources: [], prompts: [] };
  const read = new Set<unknown>();
  const names = Object.keys(exports).filter((name) => name !== 'default');
  for (const name of ['default', ...names]) await collect(exports[name], name, path, offers, read);
  if (Object.values(offers).every(({ length }) => length === 0))
    throw new NothingOffered(
      'it exports nothing that can be offered; export defineTool(…), defineMachine(…), defineResource(…) or definePrompt(…), a class or object ' +
        'with getName, getDefinition, validateArguments and execute, or a function with a schema (fn.schema = …); ' +
        'a module that only helps others has a name that begins with "_"',
    );
  return offers;
}

interface Collected {
  readonly tools: AnyTool[];
  readonly machines: AnyMachine[];
  readonly resources: ResourceDefinition[];
  readonly prompts: AnyPrompt[];
}

async function collect(
  value: unknown,
  name: string,
  path: string,
  offers: Collected,
  read: Set<unknown>,
): Promise<void> {
  if (read.has(value)) return;
  read.add(value);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) await collect(item, `${name}[${index}]`, path, offers, read);
  } else if (isDefinedTool(value)) offers.tools.push(inModule(value, path));
  else if (isDefinedMachine(value)) offers.machines.push(value);
  else if (isDefinedResource(value)) offers.resources.push(value);
  else if (isDefinedPrompt(value)) offers.prompts.push(value);
  else if (isToolObject(value)) offers.tools.push(await toolOfObject(value, name));
  else if (isToolClass(value)) offers.tools.push(await toolOfObject(new value(), name));
  else if (isToolFunction(value)) offers.tools.push(toolOfFunction(value, name, path));
}

const isDefinedTool = (value: unknown): value is AnyTool => definedKind(value) === 'tool';
const isDefinedMachine = (value: unknown): value is AnyMachine => definedKind(value) === 'machine';
const isDefinedResource = (value: unknown): value is ResourceDefinition => definedKind(value) === 'resource';
const isDefinedPrompt = (value: unknown): value is AnyPrompt => definedKind(value) === 'prompt';
