/** The registries and executors of one server, the registrations through which they are reached, and the places of features in them. */

import type {
  PromptImplementation,
  ResourceExecution,
  ResourceImplementation,
  ToolExecution,
  ToolImplementation,
} from '../execution/execution.ts';
import { HandlerErrors } from '../execution/handler-errors.ts';
import type { ContextHost } from '../execution/request-context.ts';
import type { Stages } from '../execution/stages.ts';
import type { ActorSystem } from '../kernel/actor.ts';
import type { Limits } from '../kernel/limits.ts';
import type { ExecutorMail } from '../messages/executor-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Element, RegistryMail } from '../messages/registry-messages.ts';
import type { RequestTarget } from '../messages/request-messages.ts';
import type { EventType, Prompt, Resource, ResourceTemplate, Tool } from '../protocol/types.ts';
import { Catalogue } from '../registry/catalogue.ts';
import type { AnyPrompt, AnyTool, ResourceDefinition } from '../registry/define.ts';
import { DefinitionError } from '../registry/definition-checks.ts';
import { type Compiled, compilePrompt, compileResource, compileTool, type ToolOption } from '../registry/offers.ts';
import {
  elements,
  type PromptRegistration,
  type Registration,
  type ToolRegistration,
} from '../registry/registration.ts';
import { spawnRegistry } from '../registry/registry.actor.ts';
import { servePrompts, serveResources, serveTools } from '../registry/resolve.ts';
import type { Bus } from '../transports/bus.ts';
import type { RegisteredCapabilities } from './capabilities.ts';
import { spawnExecutors } from './executors.ts';
import type { ServerOptions } from './options.ts';

/** The contents of the registries. */
export interface Catalogues {
  readonly tools: Catalogue<Tool>;
  readonly resources: Catalogue<Resource | ResourceTemplate>;
  readonly prompts: Catalogue<Prompt>;
  readonly events: Catalogue<EventType>;
}

export function createCatalogues(): Catalogues {
  return {
    tools: new Catalogue('tool'),
    resources: new Catalogue('resource'),
    prompts: new Catalogue('prompt'),
    events: new Catalogue('event'),
  };
}

/** The parts of an offer that features read. */
type Offer = Pick<Compiled<unknown, unknown>, 'listed' | 'opens'>;
type Attached<I> = Pick<Mailbox<Extract<ExecutorMail<I, never>, { type: 'attach' | 'detach' }>>, 'send'>;

/** The places at which features take part in the registration of elements. A feature sets or adds its part when it opens. */
export interface ElementHooks extends ContextHost {
  /** Makes the part of a handler's context that asks its client. */
  extendContext: ContextHost['extendContext'];
  /** Makes the state of a caller. */
  stateOf: ContextHost['stateOf'];
  /** Emits events of handlers. */
  emit: ContextHost['emit'];
  /** Holds handlers until people have approved. */
  approve: ContextHost['approve'];
  /** Makes the handler of a tool that is a statechart, or that runs in a thread. */
  machineHandler: Parameters<typeof compileTool>[2];
  threadHandler: Parameters<typeof compileTool>[3];
  /** The options of tools that features add. */
  readonly toolOptions: ToolOption[];
  /** Checks the definition of a tool of the program. @throws {DefinitionError} */
  readonly checksTool: ((definition: AnyTool) => void)[];
  readonly offeredTool: ((implementation: ToolImplementation, offer: Offer) => void)[];
  readonly offeredResource: ((implementation: ResourceImplementation, offer: Offer) => void)[];
  /**
   * The results of rules that features add, by their member, such as `approve`: each reads one. What it returns is a condition of
   * the request. @throws {TypeError} for an invalid result, which rejects the request
   */
  readonly decisions: Map<string, (given: unknown) => unknown>;
  /** Called when an element with rules is offered, or a rule about every element is added. */
  readonly guarded: (() => void)[];
  /** Called when the list of tools has changed. */
  readonly toolsChanged: (() => void)[];
  /** Completes the definition of a tool in a list. */
  shownTool: (tool: Tool, element: Element<Tool>) => Tool;
  /** Returns the names that an unknown one may mean, as the end of an error. Callers may know only of elements without rules. */
  nameHint: (kind: 'tool' | 'prompt', name: string) => string;
  /** Receive the implementations of resources, as their executor does. */
  readonly resourceReaders: Attached<ResourceImplementation>[];
}

interface ElementsHost {
  readonly system: ActorSystem;
  readonly options: ServerOptions;
  readonly limits: Limits;
  readonly capabilities: RegisteredCapabilities;
  readonly catalogues: Catalogues;
  readonly stages: Stages;
  readonly bus: Bus;
  changed(change: { readonly type: 'list changed'; readonly what: 'tools' | 'resources' | 'prompts' }): void;
}

/** The registries and executors of one server, and the registrations through which programs and features reach them. */
export interface Elements extends ElementHooks {
  readonly catalogues: Catalogues;
  readonly registries: Readonly<Record<'tools' | 'resources' | 'prompts', RequestTarget>>;
  /** The registry of tools, for mail beside registrations. */
  readonly toolRegistry: Mailbox<RegistryMail<Tool>>;
  /** Runs calls of tools, within the gates around their handlers. */
  readonly calling: ToolExecution;
  /** Reads resources for calls of other methods. */
  readonly reading: ResourceExecution;
  /** A registration of its own: another server that copies the program's elements does not get what it registers. */
  tools(): ToolRegistration;
  resources(offered?: (offer: Offer) => void): Registration<ResourceDefinition>;
  prompts(): PromptRegistration;
  /** The same for elements that are compiled already. */
  compiledTools<T extends Compiled<Tool, ToolImplementation>>(): Registration<T>;
  compiledResources<T extends Compiled<Resource | ResourceTemplate, ResourceImplementation>>(): Registration<T>;
  compiledPrompts<T extends Compiled<Prompt, PromptImplementation>>(): Registration<T>;
}

export function openElements(host: ElementsHost): Elements {
  const { options, limits, capabilities, system, catalogues, bus, stages } = host;
  const hooks: ElementHooks = {
    clock: system.clock,
    extendContext: () => {
      throw new Error('no feature asks clients and records steps: list one that does');
    },
    stateOf: () => {
      throw new Error('no feature keeps state of callers: list one that does');
    },
    emit: () => Promise.reject(new Error('no feature has events: list one that does')),
    approve: () => Promise.reject(new Error('no feature asks people for approvals: list one that does')),
    machineHandler: without('machine'),
    threadHandler: without('cpu'),
    toolOptions: [],
    checksTool: [],
    offeredTool: [],
    offeredResource: [],
    decisions: new Map(),
    guarded: [],
    toolsChanged: [],
    shownTool: (tool) => tool,
    nameHint: () => '',
    resourceReaders: [],
  };
  const executors = spawnExecutors({
    system,
    stages,
    contexts: hooks,
    executions: options.executors ?? {},
    errors: new HandlerErrors(system, options.errors),
    policy: {
      maxResultLength: limits.maxResultLength,
      warn: (message) => system.log('warning', message, { event: 'program' }),
    },
  });
  const completions = executors.completions.mailbox;
  const tools = spawnRegistry({
    system,
    address: 'registry/tools',
    catalogue: catalogues.tools,
    serve: serveTools(
      catalogues.tools,
      limits.pageSize,
      executors.tools.mailbox,
      (tool, element) => hooks.shownTool(tool, element),
      (name) => hooks.nameHint('tool', name),
    ),
    changed() {
      for (const changed of hooks.toolsChanged) changed();
      bus.emit('tools.changed', {});
      host.changed({ type: 'list changed', what: 'tools' });
    },
  }).mailbox;
  const resources = spawnRegistry({
    system,
    address: 'registry/resources',
    catalogue: catalogues.resources,
    serve: serveResources(catalogues.resources, limits.pageSize, executors.resources.mailbox, completions),
    changed: () => host.changed({ type: 'list changed', what: 'resources' }),
  }).mailbox;
  const prompts = spawnRegistry({
    system,
    address: 'registry/prompts',
    catalogue: catalogues.prompts,
    serve: servePrompts(catalogues.prompts, limits.pageSize, executors.prompts.mailbox, completions, (name) =>
      hooks.nameHint('prompt', name),
    ),
    changed: () => host.changed({ type: 'list changed', what: 'prompts' }),
  }).mailbox;

  let refs = 0;
  const nextRef = (): number => ++refs;
  const guarded = (): void => {
    for (const each of hooks.guarded) each();
  };
  const completable = (completers: object): void => {
    if (Object.keys(completers).length > 0) capabilities.add('completions');
  };
  const toolActors = {
    registry: tools,
    executors: [executors.tools.mailbox],
    catalogue: catalogues.tools,
    nextRef,
    guarded,
    offered(implementation: ToolImplementation, offer: Offer) {
      capabilities.add('tools');
      for (const each of hooks.offeredTool) each(implementation, offer);
    },
  };
  const attached: Attached<ResourceImplementation> = {
    send(mail) {
      executors.resources.mailbox.send(mail);
      completions.send(mail);
      for (const reader of hooks.resourceReaders) reader.send(mail);
    },
  };
  const resourceActors = {
    registry: resources,
    executors: [attached],
    catalogue: catalogues.resources,
    nextRef,
    guarded,
  };
  const promptActors = {
    registry: prompts,
    executors: [executors.prompts.mailbox, completions],
    catalogue: catalogues.prompts,
    nextRef,
    guarded,
    offered({ completers }: PromptImplementation) {
      capabilities.add('prompts');
      completable(completers);
    },
  };
  return Object.assign(hooks, {
    catalogues,
    registries: { tools, resources, prompts },
    toolRegistry: tools,
    calling: executors.calling,
    reading: executors.reading,
    tools: (): ToolRegistration =>
      elements({
        ...toolActors,
        compile(definition: AnyTool) {
          for (const check of hooks.checksTool) check(definition);
          return compileTool(definition, hooks.toolOptions, hooks.machineHandler, hooks.threadHandler);
        },
      }),
    resources: (own?: (offer: Offer) => void): Registration<ResourceDefinition> =>
      elements<ResourceDefinition, Resource | ResourceTemplate, ResourceImplementation>({
        ...resourceActors,
        compile: compileResource,
        offered(implementation, offer) {
          capabilities.add('resources');
          completable(implementation.completers);
          for (const each of hooks.offeredResource) each(implementation, offer);
          own?.(offer);
        },
      }),
    prompts: (): PromptRegistration =>
      elements<AnyPrompt, Prompt, PromptImplementation>({ ...promptActors, compile: compilePrompt }),
    compiledTools: <T extends Compiled<Tool, ToolImplementation>>() =>
      elements<T, Tool, ToolImplementation>({ ...toolActors, compile: (tool) => tool }),
    compiledResources: <T extends Compiled<Resource | ResourceTemplate, ResourceImplementation>>() =>
      elements<T, Resource | ResourceTemplate, ResourceImplementation>({
        ...resourceActors,
        compile: (resource) => resource,
        offered: ({ completers }) => completable(completers),
      }),
    compiledPrompts: <T extends Compiled<Prompt, PromptImplementation>>() =>
      elements<T, Prompt, PromptImplementation>({ ...promptActors, compile: (prompt) => prompt }),
  });
}

/** Rejects a tool with an option of a feature that this server does not have. */
function without(member: string): () => never {
  return () => {
    throw new DefinitionError(`a tool with ${member} needs a feature that this server does not have`);
  };
}
