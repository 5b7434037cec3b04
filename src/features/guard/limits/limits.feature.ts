/** Limits of tools: how often, how much a day and how many at a time a principal may call one. */
import { Lazy } from '../../../core/kernel/lazy.ts';
import type { Feature } from '../../../core/server/feature.ts';
import { audit } from '../audit/audit.feature.ts';
import { compileLimits, problemOfLimits } from './call-limits.ts';
import { LimitedCalls } from './limited-calls.ts';

export const limits: Feature<undefined> = {
  name: 'limits',
  open(core) {
    const { system, store, quotas, stages, elements } = core;
    const { clock, log, metrics } = system;
    const records = core.service(audit);
    const limited = new Lazy(
      () =>
        new LimitedCalls({
          ...{ clock, log, metrics, store, retained: quotas.retained },
          audit: records?.mailbox,
          notRun: records?.calls.notRun,
        }),
    );
    elements.toolOptions.push({
      name: 'limits',
      check: (value) => problemOfLimits(value),
      compile: (tool) => (tool.limits ? { limits: compileLimits(tool.limits) } : {}),
    });
    elements.offeredTool.push((implementation) => {
      if (implementation.limits) stages.fill('limit', limited.value.gate);
    });
    return { service: undefined, stop: () => limited.created?.close() };
  },
};
