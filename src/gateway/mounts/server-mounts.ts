/** Makes the mounts of a server: gives them the parts of it that they use. */
import type { Operation } from '../../core/protocol/operations.ts';
import type { Elements } from '../../core/server/elements.ts';
import type { Core } from '../../core/server/feature.ts';
import { SIGN_IN_PATH } from '../../core/transports/transport.ts';
import { code } from '../../features/code/code.feature.ts';
import { events } from '../../features/events/events.feature.ts';
import { authorization } from '../../features/guard/authorization/authorization.feature.ts';
import { skills } from '../../features/skills/skills.feature.ts';
import { FINDING } from './define-mount.ts';
import type { MountedPrompt, MountedResource, MountedTool } from './mounted-elements.ts';
import { OfferedMounts } from './offered-mounts.ts';

export function mountsOf(core: Core): OfferedMounts {
  const { options, system, limits, quotas, bus, keys, capabilities, changes, stages, elements } = core;
  return new OfferedMounts({
    ...{ bus, stages, maxMounts: limits.maxUpstreams, log: system.log },
    oneClient: () => core.transports.length > 0 && core.transports.every(({ oneClient }) => oneClient === true),
    isServable: (operation) => isServable(operation, elements.catalogues),
    host: () => ({
      ...{ system, name: options.name, version: options.version, capabilities, gatherMs: limits.gatherMs, keys },
      returnAddresses: () => core.transports.flatMap((transport) => transport.pageAddress?.(SIGN_IN_PATH) ?? []),
      store: () => core.storage.open().then(() => core.store),
      search: {
        seeTools: (request) => core.service(authorization).seeTools(request),
        stages,
        catalogue: elements.catalogues.tools,
        tools: elements.tools(),
      },
      code: () => core.service(code),
      topics: () => core.service(events).topics,
      subscriptions: changes,
      connections: quotas.upstreamConnections,
      maxResultLength: limits.maxResultLength,
      skills: core.service(skills),
      registrations: {
        tools: elements.compiledTools<MountedTool>(),
        resources: elements.compiledResources<MountedResource>(),
        prompts: elements.compiledPrompts<MountedPrompt>(),
      },
    }),
  });
}

/** True if a request needs no list, and names an element that is registered. */
function isServable(
  operation: Operation,
  { tools, prompts, resources, events: types }: Elements['catalogues'],
): boolean {
  switch (operation.method) {
    case 'tools/call':
      // The tools of mounts are found by them.
      return tools.get(operation.name) !== undefined && !FINDING.has(operation.name);
    case 'prompts/get':
      return prompts.get(operation.name) !== undefined;
    case 'events/poll':
    case 'events/stream':
    case 'events/subscribe':
      return types.get(operation.name) !== undefined;
    case 'resources/read':
    case 'resources/subscribe':
      return resources.get(operation.uri) !== undefined;
    case 'completion/complete':
      return operation.ref.type === 'ref/prompt'
        ? prompts.get(operation.ref.name) !== undefined
        : resources.get(operation.ref.uri) !== undefined;
    case 'subscriptions/listen':
      return operation.filter.resources?.every((uri) => resources.get(uri) !== undefined) ?? true;
    default:
      return !NEEDS_LISTS.has(operation.method);
  }
}

const NEEDS_LISTS: ReadonlySet<string> = new Set([
  ...['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'],
  ...['skills/list', 'skills/get', 'resources/directory/read', 'events/list'],
]);
