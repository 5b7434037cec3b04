/** Creates the registries, the executors, and the registrations through which authors reach them. */

import { type AppRegistration, appRegistration } from '../../features/apps/app-registration.ts';
import { checkOpenedPages, OpenedPages } from '../../features/apps/opened-pages.ts';
import { ResourceReads } from '../../features/apps/resource-reads.ts';
import { ToolPages } from '../../features/apps/tool-pages.ts';
import { ViewKeys } from '../../features/apps/view-keys.ts';
import { watchTool } from '../../features/apps/watch-tool.ts';
import { Watches } from '../../features/apps/watches.ts';
import type { InteractiveRequests } from '../../features/asking/interactive-requests.ts';
import { ANSWER_DEFINITION } from '../../features/asking/model-fallback.ts';
import type { StateKeys } from '../../features/asking/seal.ts';
import { LIMITS } from '../../features/guard/limits/call-limits.ts';
import { endlessCycle } from '../../features/machines/cycles.ts';
import type { Handles } from '../../features/machines/handles.ts';
import { missingImplementations } from '../../features/machines/machine-references.ts';
import { machineRegistration } from '../../features/machines/machine-registration.ts';
import type { MachineRegistration } from '../../features/machines/registered-machines.ts';
import { statechartRunner } from '../../features/machines/statechart-call.ts';
import { answerInView } from '../../features/machines/tools/answer-in-view.ts';
import type { CompiledTool } from '../../features/machines/tools/handle-tools.ts';
import { OfferedSkills } from '../../features/skills/offered-skills.ts';
import type { Tasks } from '../../features/tasks/tasks.ts';
import { Pool } from '../../features/workers/pool.ts';
import type { MountedPrompt, MountedResource, MountedTool } from '../../gateway/mounts/mounted-elements.ts';
import { OfferedMounts } from '../../gateway/mounts/offered-mounts.ts';
import type { SearchHost } from '../../gateway/mounts/search-tools.ts';

import type { Context } from '../execution/context.ts';
import type {
  PromptImplementation,
  ResourceImplementation,
  ToolExecution,
  ToolImplementation,
} from '../execution/execution.ts';

import { HandlerErrors } from '../execution/handler-errors.ts';
import type { Stages } from '../execution/stages.ts';
import type { ActorSystem } from '../kernel/actor.ts';
import type { Limits } from '../kernel/limits.ts';
import type { Quota } from '../kernel/quota.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Listed } from '../messages/registry-messages.ts';
import type { RequestTarget } from '../messages/request-messages.ts';
import type { SubscriptionsMail } from '../messages/subscription-messages.ts';
import { VIEWS_EXTENSION } from '../protocol/extensions.ts';
import type { Prompt, Resource, ResourceTemplate, Tool } from '../protocol/types.ts';
import { Catalogue } from '../registry/catalogue.ts';
import type { AnyPrompt, AnyTool, ResourceDefinition } from '../registry/define.ts';
import { DefinitionError } from '../registry/definition-checks.ts';
import { compilePrompt, compileResource, compileTool } from '../registry/offers.ts';
import {
  elements,
  type PromptRegistration,
  type Registration,
  type ToolRegistration,
} from '../registry/registration.ts';
import { spawnRegistry } from '../registry/registry.actor.ts';
import { servePrompts, serveResources, serveTools } from '../registry/resolve.ts';
import { warnOfUntestedXState } from '../registry/xstate-copy.ts';
import type { Store } from '../store/store.ts';
import type { Bus } from '../transports/bus.ts';
import type { ReturnAddress } from '../transports/transport.ts';
import type { RegisteredCapabilities } from './capabilities.ts';
import { type Contexts, spawnExecutors } from './executors.ts';
import type { ServerOptions } from './options.ts';

/** The contents of the registries. */
export interface Catalogues {
  readonly tools: Catalogue<Tool>;
  readonly resources: Catalogue<Resource | ResourceTemplate>;
  readonly prompts: Catalogue<Prompt>;
}

export function createCatalogues(): Catalogues {
  return { tools: new Catalogue('tool'), resources: new Catalogue('resource'), prompts: new Catalogue('prompt') };
}

export interface OfferingOptions {
  readonly catalogues: Catalogues;
  readonly system: ActorSystem;
  readonly interactive: InteractiveRequests;
  readonly tasks: Tasks;
  readonly handles: Handles;
  readonly options: ServerOptions;
  readonly limits: Limits;
  readonly capabilities: RegisteredCapabilities;
  /** True if the store keeps the checkpoints of statecharts. */
  readonly durable: boolean;
  readonly bus: Bus;
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  readonly stages: Stages;
  readonly contexts: Contexts;
  /** Called when a tool is offered. */
  offeredTool(implementation: ToolImplementation): void;
  /** Called when an element with rules is offered. */
  guarded(): void;
  readonly keys: StateKeys;
  /** Counts the calls that wait for a change. */
  readonly watches: Quota;
  /** Counts the connections to the servers of mounts. */
  readonly upstreamConnections: Quota;
  /** The addresses of open transports for browsers that return from a sign-in. */
  returnAddresses(): readonly ReturnAddress[];
  /** Opens the store. */
  kept(): Promise<Store>;
  search(): Pick<SearchHost, 'seeTools' | 'stages'>;
}

export interface Offering {
  readonly tools: ToolRegistration;
  readonly machines: MachineRegistration;
  readonly resources: Registration<ResourceDefinition>;
  readonly prompts: PromptRegistration;
  readonly apps: AppRegistration;
  readonly skills: OfferedSkills;
  readonly mounts: OfferedMounts;
  /** @throws {DefinitionError} if a tool opens an app that is not registered */
  checkApps(): void;
  readonly registries: {
    readonly tools: RequestTarget;
    readonly resources: RequestTarget;
    readonly prompts: RequestTarget;
  };
  /** Runs calls of tools, within no gates. */
  readonly calling: ToolExecution;
  /** Ends the calls that wait for a change. */
  stopWatches(): void;
  /** Stops the threads. */
  end(): void;
}

export function spawnOffering(host: OfferingOptions): Offering {
  const { options, limits, capabilities, system, catalogues, bus, subscriptions } = host;
  const executors = spawnExecutors({
    ...host,
    executions: options.executors ?? {},
    errors: new HandlerErrors(system, options.errors),
    policy: {
      maxResultLength: limits.maxResultLength,
      warn: (message) => host.system.log('warning', message, { event: 'program' }),
    },
  });
  const completions = executors.completions.mailbox;
  const pages = new OpenedPages({ uriOf: (tool) => toolPages.uriOf(tool) });
  const tools = spawnRegistry({
    system,
    address: 'registry/tools',
    catalogue: catalogues.tools,
    serve: serveTools(catalogues.tools, limits.pageSize, executors.tools.mailbox, pages.shown),
    changed() {
      toolPages.sync();
      bus.emit('tools.changed', {});
      subscriptions.send({ type: 'list changed', what: 'tools' });
    },
  }).mailbox;
  const resources = spawnRegistry({
    system,
    address: 'registry/resources',
    catalogue: catalogues.resources,
    serve: serveResources(catalogues.resources, limits.pageSize, executors.resources.mailbox, completions),
    changed: () => subscriptions.send({ type: 'list changed', what: 'resources' }),
  }).mailbox;
  const prompts = spawnRegistry({
    system,
    address: 'registry/prompts',
    catalogue: catalogues.prompts,
    serve: servePrompts(catalogues.prompts, limits.pageSize, executors.prompts.mailbox, completions),
    changed: () => subscriptions.send({ type: 'list changed', what: 'prompts' }),
  }).mailbox;

  let refs = 0;
  const nextRef = (): number => ++refs;
  const runMachine = statechartRunner({ ...system, limits, durable: host.durable });
  const pool = new Pool(host);
  const completable = (completers: object): void => {
    if (Object.keys(completers).length > 0) capabilities.add('completions');
  };
  const usesViews = (listed: Listed | undefined): void => {
    if (listed === 'views') capabilities.extend(VIEWS_EXTENSION);
  };
  const toolActors = {
    registry: tools,
    executors: [executors.tools.mailbox],
    catalogue: catalogues.tools,
    nextRef,
    guarded: host.guarded,
    offered(implementation: ToolImplementation, { listed }: { readonly listed?: Listed | undefined }) {
      capabilities.add('tools');
      usesViews(listed);
      if (implementation.task !== 'never') capabilities.add('tasks');
      host.offeredTool(implementation);
    },
  };
  const registration = (): ToolRegistration =>
    elements({
      ...toolActors,
      compile: (definition) => {
        if (definition.machine) warnOfUntestedXState(host.system.log);
        if (definition.app === true) toolPages.use(definition.name);
        return compileTool(settling(definition), [LIMITS], runMachine, pool.runner);
      },
    });
  // A separate registration: this tool is not the author's, whose tools may be copied to another server.
  const offerAnswers = once(() => {
    const handler = (args: never, ctx: Context) => answerInView(args, ctx, host.handles, viewKeys);
    const forViews = { description: ANSWER_IN_VIEW, visibleTo: ['app'] } as const;
    registration().register({ ...ANSWER_DEFINITION, ...(options.askThroughModel ? {} : forViews), handler });
  });
  const reads = new ResourceReads(catalogues.resources, executors.reading);
  const viewKeys = new ViewKeys(host.keys, () => system.clock.date());
  const watches = new Watches({ clock: system.clock, subscriptions, quota: host.watches });
  const offerWatch = once(() =>
    registration().register(watchTool({ clock: system.clock, reads, watches, keys: viewKeys })),
  );
  const resourceActors = {
    registry: resources,
    executors: [executors.resources.mailbox, completions, reads],
    catalogue: catalogues.resources,
    nextRef,
    guarded: host.guarded,
  };
  /** @param hasPage called when a page is offered */
  const resourceRegistration = (hasPage?: () => void): Registration<ResourceDefinition> =>
    elements<ResourceDefinition, Resource | ResourceTemplate, ResourceImplementation>({
      ...resourceActors,
      compile: compileResource,
      offered({ completers }, { listed }) {
        capabilities.add('resources');
        usesViews(listed);
        completable(completers);
        if (listed !== 'views') return;
        offerWatch();
        hasPage?.();
      },
    });
  const promptActors = {
    registry: prompts,
    executors: [executors.prompts.mailbox, completions],
    catalogue: catalogues.prompts,
    nextRef,
    guarded: host.guarded,
    offered({ completers }: PromptImplementation) {
      capabilities.add('prompts');
      completable(completers);
    },
  };
  const skills = new OfferedSkills({
    system,
    capabilities,
    server: options.name,
    resources: resourceRegistration,
    resourceCatalogue: catalogues.resources,
    subscriptions,
    pageSize: limits.pageSize,
    listTtlMs: options.listTtlMs ?? 0,
  });
  const mounts = new OfferedMounts({
    bus,
    maxMounts: limits.maxUpstreams,
    log: system.log,
    host: () => ({
      system,
      name: options.name,
      version: options.version,
      capabilities,
      gatherMs: limits.gatherMs,
      keys: host.keys,
      returnAddresses: host.returnAddresses,
      store: host.kept,
      search: { ...host.search(), catalogue: catalogues.tools, tools: registration() },
      subscriptions,
      connections: host.upstreamConnections,
      registrations: {
        // Separate registrations: another server that copies the author's elements does not get those of mounts.
        tools: elements<MountedTool, Tool, ToolImplementation>({ ...toolActors, compile: (tool) => tool }),
        resources: elements<MountedResource, Resource | ResourceTemplate, ResourceImplementation>({
          ...resourceActors,
          compile: (resource) => resource,
          offered: ({ completers }) => completable(completers),
        }),
        prompts: elements<MountedPrompt, Prompt, PromptImplementation>({
          ...promptActors,
          compile: (prompt) => prompt,
        }),
      },
    }),
  });
  const toolPages = new ToolPages({
    server: options.name,
    catalogue: catalogues.tools,
    resources: resourceRegistration(),
  });
  // Last: its registration uses the pages of tools.
  if (options.askThroughModel) offerAnswers();
  return {
    tools: registration(),
    // Separate registrations, too: another server receives the machine and generates its own tools.
    machines: machineRegistration({
      views: { server: options.name, clock: system.clock, keys: viewKeys },
      handles: host.handles,
      skills,
      tools: elements<CompiledTool, Tool, ToolImplementation>({ ...toolActors, compile: (tool) => tool }),
      resources: resourceRegistration(offerAnswers),
    }),
    resources: resourceRegistration(),
    prompts: elements<AnyPrompt, Prompt, PromptImplementation>({
      ...promptActors,
      compile: compilePrompt,
    }),
    skills,
    mounts,
    apps: appRegistration({
      server: options.name,
      pages,
      resources: resourceRegistration(),
      tools,
      catalogue: catalogues.tools,
    }),
    checkApps: () => checkOpenedPages(catalogues.tools.all(), pages),
    registries: { tools, resources, prompts },
    calling: executors.calling,
    stopWatches: () => watches.close(),
    end: () => pool.end(),
  };
}

/**
 * @throws {DefinitionError} if a machine loops without end as soon as it starts, which no timer could interrupt
 *   or names an implementation that it does not have
 */
function settling(definition: AnyTool): AnyTool {
  const { name, machine } = definition;
  // If it is not a machine, the check of the definition rejects it by name.
  if (typeof machine?.transition !== 'function') return definition;
  const missing = missingImplementations(machine);
  if (missing.length > 0) throw new DefinitionError(`tool "${name}": machine: ${missing.join('\n- ')}`);
  const cycle = endlessCycle(machine);
  if (!cycle) return definition;
  throw new DefinitionError(
    `tool "${name}": machine: the eventless transitions of ${cycle.join(', ')} form an endless loop: add a guard to one of them`,
  );
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    work();
  };
}

/** The description of the answer tool for views alone. */
const ANSWER_IN_VIEW =
  'For the views of this server: answers the questions of an instance. The id is the uri of the instance. Only the user answers.';
