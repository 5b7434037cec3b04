/** Reads a module's definitions from its exports: the three forms of a tool, and machines, resources, prompts and mounts. */

import { type AnyPrompt, type AnyTool, definedKind, type ResourceDefinition } from '../../core/registry/define.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { inModule } from '../../core/registry/thread-module.ts';
import type { MountDefinition } from '../../gateway/mounts/define-mount.ts';
import type { AnyMachine } from '../machines/define-machine.ts';
import type { Exports } from './load-module.ts';
import { isToolFunction, toolOfFunction } from './tool-function.ts';
import { isToolClass, isToolObject, toolOfObject } from './tool-object.ts';

/** The definitions from one source. */
export interface Offers {
  readonly tools: readonly AnyTool[];
  readonly machines: readonly AnyMachine[];
  readonly resources: readonly ResourceDefinition[];
  readonly prompts: readonly AnyPrompt[];
  readonly mounts: readonly MountDefinition[];
}

export const NO_OFFERS: Offers = { tools: [], machines: [], resources: [], prompts: [], mounts: [] };

/** Thrown if a module exports no definition. */
export class NothingOffered extends DefinitionError {}

/**
 * Reads a module's definitions: the default export first, then the named exports by name. A value that is exported
 * under two names counts once.
 * @param path the module's path; its base name is the last resort for a tool's name
 * @throws {NothingOffered} if the module exports no definition; the message lists what it could export
 * @throws {DefinitionError} if an export is an incomplete tool; the message names what is missing
 */
export async function readExports(exports: Exports, path: string): Promise<Offers> {
  const offers = { tools: [], machines: [], resources: [], prompts: [], mounts: [] };
  const read = new Set<unknown>();
  const names = Object.keys(exports).filter((name) => name !== 'default');
  for (const name of ['default', ...names]) await collect(exports[name], name, path, offers, read);
  if (Object.values(offers).every(({ length }) => length === 0))
    throw new NothingOffered(
      'the module exports no definition; export defineTool(…), defineMachine(…), defineResource(…), definePrompt(…) or defineMount(…), a class or object ' +
        'with getName, getDefinition, validateArguments and execute, or a function with a schema (fn.schema = …); ' +
        'start the name of a helper module with "_"',
    );
  return offers;
}

interface Collected {
  readonly tools: AnyTool[];
  readonly machines: AnyMachine[];
  readonly resources: ResourceDefinition[];
  readonly prompts: AnyPrompt[];
  readonly mounts: MountDefinition[];
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
  else if (isDefinedMount(value)) offers.mounts.push(value);
  else if (isToolObject(value)) offers.tools.push(await toolOfObject(value, name));
  else if (isToolClass(value)) offers.tools.push(await toolOfObject(new value(), name));
  else if (isToolFunction(value)) offers.tools.push(toolOfFunction(value, name, path));
}

const isDefinedTool = (value: unknown): value is AnyTool => definedKind(value) === 'tool';
const isDefinedMachine = (value: unknown): value is AnyMachine => definedKind(value) === 'machine';
const isDefinedResource = (value: unknown): value is ResourceDefinition => definedKind(value) === 'resource';
const isDefinedMount = (value: unknown): value is MountDefinition => definedKind(value) === 'mount';
const isDefinedPrompt = (value: unknown): value is AnyPrompt => definedKind(value) === 'prompt';
