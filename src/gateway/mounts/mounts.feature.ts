/** Mounts: other servers as parts of this one. */
import { visibleTo } from '../../core/protocol/views.ts';
import type { Feature } from '../../core/server/feature.ts';
import { authorization } from '../../features/guard/authorization/authorization.feature.ts';
import { skills } from '../../features/skills/skills.feature.ts';
import type { MountedPrompt, MountedResource, MountedTool } from './mounted-elements.ts';
import { OfferedMounts } from './offered-mounts.ts';

export const mounts: Feature<OfferedMounts> = {
  name: 'mounts',
  open(core) {
    const { options, system, limits, quotas, bus, keys, capabilities, changes, stages, elements } = core;
    const opened = new OfferedMounts({
      ...{ bus, maxMounts: limits.maxUpstreams, log: system.log },
      host: () => ({
        ...{ system, name: options.name, version: options.version, capabilities, gatherMs: limits.gatherMs, keys },
        returnAddresses: () => core.transports.flatMap(({ returnAddress }) => returnAddress ?? []),
        store: () => core.storage.open().then(() => core.store),
        search: {
          seeTools: (request) => core.service(authorization).seeTools(request),
          stages,
          catalogue: elements.catalogues.tools,
          tools: elements.tools(),
        },
        subscriptions: changes,
        connections: quotas.upstreamConnections,
        skills: core.service(skills),
        registrations: {
          tools: elements.compiledTools<MountedTool>(),
          resources: elements.compiledResources<MountedResource>(),
          prompts: elements.compiledPrompts<MountedPrompt>(),
        },
      }),
    });
    elements.nameHint = (kind, name) => opened.nameHint(kind, name);
    const { shownTool } = elements;
    elements.shownTool = (tool, element) => {
      const shown = shownTool(tool, element);
      return opened.isForModels(element) ? { ...shown, _meta: visibleTo(shown._meta, ['model']) } : shown;
    };
    return {
      service: opened,
      listens: opened,
      ready: () => opened.ready(),
      unready: () => (opened.missing ? 'no catalogue' : undefined),
      hosts: () => ({
        get signIns() {
          return opened.signIns;
        },
      }),
      stop: () => opened.close(),
    };
  },
};
