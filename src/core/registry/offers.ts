/**
 * Compiles authors' definitions into what registries and executors store: a description and an implementation. Rejects
 * invalid definitions with a message that names the fix.
 */
import type { AnyStateMachine } from 'xstate';
import type {
  Completer,
  LiveReader,
  PromptImplementation,
  ResourceImplementation,
  ToolImplementation,
} from '../execution/execution.ts';
import type { ElementAccess, Guarded } from '../messages/authorization-rule.ts';
import type { Element, Listed } from '../messages/registry-messages.ts';
import { describe, isObject, type JsonObject } from '../protocol/json.ts';
import type { Check } from '../protocol/option-rows.ts';
import type { Prompt, PromptArgument, Resource, ResourceTemplate, Tool } from '../protocol/types.ts';
import { parseTemplate } from '../protocol/uri-template.ts';
import { visibleTo } from '../protocol/views.ts';
import { compileInput, compileOutput } from '../schema/compile-schema.ts';
import type { AuthorSchema } from '../schema/schema-types.ts';
import {
  type AnyPrompt,
  type AnyTool,
  definedKind,
  type ResourceDefinition,
  type ThreadSource,
  type ToolOptions,
} from './define.ts';
import { checkHandler, checkMembers, DefinitionError, MEMBERS } from './definition-checks.ts';
import { threadSource } from './thread-module.ts';
import { foreignCopy } from './xstate-copy.ts';

/** An element as its registration compiled it: its registry gives it a source and a reference. */
export interface Compiled<D, I> extends Omit<Element<D>, 'ref' | 'source' | 'enabled'> {
  readonly implementation: I;
}

/** An option of tools that a feature adds to {@link ToolOptions} and to {@link ToolImplementation}. */
export interface ToolOption {
  readonly name: string;
  readonly check: Check;
  /** Returns what the calls of a tool need of its valid options. */
  compile(options: ToolOptions): Partial<ToolImplementation>;
}

/**
 * @param added the options that features add
 * @param machineHandler makes the handler of a tool that is a machine
 * @param threadHandler makes the handler of a tool that runs in a thread
 * @throws {DefinitionError | SchemaError}
 */
export function compileTool(
  definition: AnyTool,
  added: readonly ToolOption[],
  machineHandler: (name: string, machine: AnyStateMachine) => ToolImplementation['handler'],
  threadHandler: (label: string, source: ThreadSource) => ToolImplementation['handler'],
): Compiled<Tool, ToolImplementation> {
  const { name, handler, machine, input, output, annotations, timeoutMs, rerun, task = 'never' } = definition;
  const { app, visibleTo: visibility } = definition;
  const label = elementLabel('tool', name);
  const source = threadSource(definition, label);
  if (machine === undefined) {
    if (source?.tool !== undefined || source === undefined) checkHandler(handler, label);
  } else if (handler !== undefined)
    throw new DefinitionError(`${label}: expected a handler or a machine, got both: remove the handler`);
  const checks = Object.fromEntries(added.map(({ name: option, check }) => [option, check]));
  checkMembers({ ...MEMBERS.tool, ...checks }, label, definition);
  const foreign = machine && foreignCopy(machine);
  if (foreign !== undefined) throw new DefinitionError(`${label}: machine: ${foreign}`);
  const checked = compileInput(input, `${label}: input`);
  const structured = output === undefined ? undefined : compileOutput(output, `${label}: output`);
  return {
    key: name,
    access: accessOf({ scopes: definition.scopes, allow: definition.allow }),
    opens: app === false ? undefined : app,
    ...(visibility && !visibility.includes('model') ? { listed: 'views' } : {}),
    definition: {
      name,
      ...described(definition),
      ...(visibility ? { _meta: visibleTo(definition.meta, visibility) } : {}),
      inputSchema: checked.json,
      ...(structured ? { outputSchema: structured.json } : {}),
      ...(annotations ? { annotations } : {}),
      ...(task === 'never' ? {} : { execution: { taskSupport: task === 'allowed' ? 'optional' : 'required' } }),
    },
    // The schema checks at run time what the handler's types promise.
    implementation: {
      ...Object.assign({}, ...added.map((option) => option.compile(definition))),
      label,
      input: checked,
      output: structured,
      timeoutMs,
      rerun,
      task,
      handler: source
        ? threadHandler(label, source)
        : machine
          ? machineHandler(name, machine)
          : (handler as ToolImplementation['handler']),
    },
  };
}

/** @throws {DefinitionError | TemplateError} */
export function compileResource(
  definition: ResourceDefinition &
    Pick<ElementAccess, 'machine'> & { readonly listed?: Listed; readonly live?: LiveReader; readonly opener?: string },
): Compiled<Resource | ResourceTemplate, ResourceImplementation> {
  const { uri, handler, name = uri, mimeType, annotations, size, complete = {}, ttlMs, cacheScope } = definition;
  const label = resourceLabel(uri);
  checkHandler(handler, label);
  checkMembers(MEMBERS.resource, label, definition);
  const shared = {
    name,
    ...described(definition),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(annotations ? { annotations } : {}),
  };
  const template = uri.includes('{') ? parseTemplate(uri) : undefined;
  completersFit(complete, template?.variables ?? [], label);
  return {
    key: uri,
    access: accessOf(definition),
    listed: definition.listed,
    opener: definition.opener,
    definition: template
      ? { uriTemplate: uri, ...shared }
      : { uri, ...shared, ...(size === undefined ? {} : { size }) },
    implementation: {
      label,
      completers: complete,
      hints: { ...(ttlMs === undefined ? {} : { ttlMs }), ...(cacheScope === undefined ? {} : { cacheScope }) },
      read: handler,
      live: definition.live,
    },
  };
}

/** @throws {DefinitionError | SchemaError} */
export function compilePrompt(definition: AnyPrompt): Compiled<Prompt, PromptImplementation> {
  const { name, handler, input, arguments: listed, complete = {} } = definition;
  const label = elementLabel('prompt', name);
  checkHandler(handler, label);
  checkMembers(MEMBERS.prompt, label, definition);
  if (input !== undefined && listed !== undefined)
    throw new DefinitionError(`${label}: expected "input" or "arguments", got both`);
  const schema: AuthorSchema | undefined = input ?? (listed && schemaOf(listed));
  const checked = schema === undefined ? undefined : compileInput(schema, `${label}: input`);
  const args = listed ?? (checked ? argumentsOf(checked.json) : undefined);
  completersFit(complete, args?.map((argument) => argument.name) ?? [], label);
  return {
    key: name,
    access: accessOf({ scopes: definition.scopes, allow: definition.allow }),
    definition: { name, ...described(definition), ...(args ? { arguments: args } : {}) },
    implementation: {
      label,
      completers: complete,
      input: checked,
      handler: handler as PromptImplementation['handler'],
    },
  };
}

/** A variable as routers of HTTP write it. */
const ROUTED = /(\/):([A-Za-z]\w*)/g;

/** @throws {DefinitionError} if the URI has no scheme, or a variable that is none */
export function resourceLabel(uri: unknown): string {
  if (typeof uri === 'string' && uri.search(ROUTED) !== -1)
    throw new DefinitionError(
      `resource "${uri}": a variable of a template stands in braces (RFC 6570): ${uri.replace(ROUTED, '$1{$2}')}`,
    );
  if (typeof uri === 'string' && /^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri)) return `resource "${uri}"`;
  throw new DefinitionError(
    `resource ${typeof uri === 'string' ? `"${uri}"` : describe(uri)}: expected a uri with a scheme (RFC 3986), such as "app://settings" or "file:///{+path}"`,
  );
}

/** The rule for names is that of tools (MCP 2025-11-25 tools, "Tool Names", SEP-986); prompts follow it, too. */
export function elementLabel(kind: 'tool' | 'prompt', name: unknown): string {
  const defined = isObject(name) ? definedKind(name) : undefined;
  if (defined)
    throw new DefinitionError(
      `server.${kind}: expected a name, got a definition of a ${defined}. Write server.${kind}('name', { … }, handler), or export the definition from a module that server.discover(directory) or \`troupe run DIRECTORY\` loads`,
    );
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    throw new DefinitionError(
      `${kind} ${typeof name === 'string' ? `"${name}"` : describe(name)}: a name has 1 to 128 letters, digits, "_", "-" and "."; use "title" for the display name`,
    );
  }
  return `${kind} "${name}"`;
}

/** The rules of an element; undefined if it has none. */
export function accessOf({
  scopes = [],
  allow,
  machine,
}: Guarded & Pick<ElementAccess, 'machine'>): ElementAccess | undefined {
  if (scopes.length === 0 && !allow && !machine) return undefined;
  return { scopes: [...scopes], allow, ...(machine ? { machine } : {}) };
}

function described({ title, description, icons, meta }: Pick<AnyTool, 'title' | 'description' | 'icons' | 'meta'>) {
  return {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(icons === undefined ? {} : { icons }),
    ...(meta === undefined ? {} : { _meta: meta }),
  };
}

function completersFit(completers: Readonly<Record<string, Completer>>, names: readonly string[], label: string): void {
  for (const [name, completer] of Object.entries(completers)) {
    checkHandler(completer, label, `complete.${name}`);
    if (!names.includes(name))
      throw new DefinitionError(
        `${label}: complete.${name}: there is no such argument; there ${names.length === 0 ? 'is none' : `are ${names.join(', ')}`}`,
      );
  }
}

function schemaOf(args: readonly PromptArgument[]): JsonObject {
  return {
    type: 'object',
    properties: Object.fromEntries(
      args.map(({ name, description }) => [
        name,
        { type: 'string', ...(description === undefined ? {} : { description }) },
      ]),
    ),
    required: args.filter(({ required }) => required).map(({ name }) => name),
  };
}

function argumentsOf({ properties, required }: JsonObject): readonly PromptArgument[] {
  if (!isObject(properties)) return [];
  return Object.entries(properties).map(([name, property]) => {
    const about = isObject(property) ? property : {};
    return {
      name,
      ...(typeof about.title === 'string' ? { title: about.title } : {}),
      ...(typeof about.description === 'string' ? { description: about.description } : {}),
      ...(Array.isArray(required) && required.includes(name) ? { required: true } : {}),
    };
  });
}
