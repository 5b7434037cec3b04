/** Authorization: rules about every use of every element. */
import { Lazy } from '../../../core/kernel/lazy.ts';
import type { Feature } from '../../../core/server/feature.ts';
import { asking } from '../../asking/asking.feature.ts';
import { tasks } from '../../tasks/tasks.feature.ts';
import { audit } from '../audit/audit.feature.ts';
import { Admission } from './admission.ts';

export const authorization: Feature<Admission> = {
  name: 'authorization',
  open(core) {
    const { system, bus, limits, subscriptions, stages, elements } = core;
    const admission = new Lazy(
      () =>
        new Admission({
          ...{ system, bus, subscriptions, stages, catalogues: elements.catalogues },
          tasks: core.service(tasks),
          answers: core.service(asking).interactive,
          audit: core.service(audit)?.mailbox,
          maxSubscriptions: limits.maxSubscriptions,
          eventsCodes: core.options.events?.codes,
          decisions: elements.decisions,
          guarded() {
            for (const each of elements.guarded) each();
          },
        }),
    );
    elements.guarded.push(() => admission.value.begin());
    return {
      get service() {
        return admission.value;
      },
    };
  },
};
