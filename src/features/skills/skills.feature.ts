/** Skills: folders of instructions that a server offers as resources (SEP-2640). */
import type { Feature } from '../../core/server/feature.ts';
import { OfferedSkills } from './offered-skills.ts';
import { SKILL_METHODS } from './skill-methods.ts';

export const skills: Feature<OfferedSkills> = {
  name: 'skills',
  open({ options, system, limits, capabilities, changes, elements }) {
    const opened = new OfferedSkills({
      ...{ system, capabilities, server: options.name, subscriptions: changes },
      resources: () => elements.resources(),
      resourceCatalogue: elements.catalogues.resources,
      pageSize: limits.pageSize,
      listTtlMs: options.listTtlMs ?? 0,
    });
    return {
      service: opened,
      methods: SKILL_METHODS,
      serves: { skills: opened },
      ready: () => opened.ready(),
      end: () => opened.close(),
    };
  },
};
