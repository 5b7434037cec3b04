/** Durability of calls: a call that is repeated gets the outcome that it had, and runs at most once. */
import type { Feature } from '../../core/server/feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import { ReplyCache } from './reply-cache.ts';
import { isRepeatable } from './tool-hints.ts';

export const durability: Feature<undefined> = {
  name: 'durability',
  open(core) {
    const { system, store, limits, sessions, lasting, stages, elements } = core;
    const { tools } = elements.catalogues;
    const repeatableTools = (): readonly string[] =>
      tools.all().flatMap((tool) => (tool.enabled && isRepeatable(tool) ? tool.key : []));
    const replies =
      sessions &&
      new ReplyCache({
        ...{ system, store, limits, sessions, lasting, definitions: tools },
        audit: core.service(audit)?.calls,
      });
    if (replies) stages.fill('replay', replies.gate);
    return { service: undefined, hosts: () => ({ repeatableTools }), ...(replies && { replies }) };
  },
};
