/** Mounts: other servers as parts of this one. */

import { Lazy } from '../../core/kernel/lazy.ts';
import type { Operation } from '../../core/protocol/operations.ts';
import { visibleTo } from '../../core/protocol/views.ts';
import type { Elements } from '../../core/server/elements.ts';
import type { Feature } from '../../core/server/feature.ts';
import { SIGN_IN_PATH } from '../../core/transports/transport.ts';
import { code } from '../../features/code/code.feature.ts';
import { authorization } from '../../features/guard/authorization/authorization.feature.ts';
import { skills } from '../../features/skills/skills.feature.ts';
import { FINDING } from './define-mount.ts';
import type { MountedPrompt, MountedResource, MountedTool } from './mounted-elements.ts';
import { OfferedMounts } from './offered-mounts.ts';

export const mounts: Feature<OfferedMounts> = {
  name: 'mounts',
  open(core) {
    const { options, system, limits, quotas, bus, keys, capabilities, changes, stages, elements } = core;
    const offered = new Lazy(
      () =>
        new OfferedMounts({
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
        }),
    );
    elements.nameHint = (kind, name) => offered.created?.nameHint(kind, name) ?? '';
    const { shownTool } = elements;
    elements.shownTool = (tool, element) => {
      const shown = shownTool(tool, element);
      return offered.created?.isForModels(element) ? { ...shown, _meta: visibleTo(shown._meta, ['model']) } : shown;
    };
    return {
      get service() {
        return offered.value;
      },
      listens: {
        listened: (uri) => offered.created?.listened(uri),
        unlistened: (uri) => offered.created?.unlistened(uri),
      },
      ready: () => offered.created?.ready() ?? Promise.resolve(),
      unready: () => (offered.created?.missing ? 'no catalogue' : undefined),
      pages: { [SIGN_IN_PATH]: async (request) => offered.created?.signIns?.page(request) },
      stop: () => offered.created?.close(),
    };
  },
};

/** True if a request needs no list, and names an element that is registered. */
function isServable(operation: Operation, { tools, prompts, resources }: Elements['catalogues']): boolean {
  switch (operation.method) {
    case 'tools/call':
      // The tools of mounts are found by them.
      return tools.get(operation.name) !== undefined && !FINDING.has(operation.name);
    case 'prompts/get':
      return prompts.get(operation.name) !== undefined;
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
  ...['skills/list', 'skills/get', 'resources/directory/read'],
]);
