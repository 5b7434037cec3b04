/** Skills: folders of instructions that a server offers as resources (SEP-2640). */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { OfferedSkills } from './offered-skills.ts';
import { SKILL_METHODS } from './skill-methods.ts';

export const skills: Feature<OfferedSkills> = {
  name: 'skills',
  open({ options, system, limits, capabilities, changes, elements }) {
    const offered = new Lazy(
      () =>
        new OfferedSkills({
          ...{ system, capabilities, server: options.name, subscriptions: changes },
          resources: () => elements.resources(),
          resourceCatalogue: elements.catalogues.resources,
          pageSize: limits.pageSize,
          listTtlMs: options.listTtlMs ?? 0,
        }),
    );
    return {
      get service() {
        return offered.value;
      },
      methods: SKILL_METHODS,
      serves: { skills: { send: (mail) => offered.value.send(mail) } },
      ready: () => offered.created?.ready() ?? Promise.resolve(),
      end: () => offered.created?.close(),
    };
  },
};
