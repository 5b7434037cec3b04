/** The audit: records who did what. */
import type { Feature } from '../../../core/server/feature.ts';
import { problemOfAudit } from './audit-options.ts';
import { Audit } from './server-audit.ts';

export const audit: Feature<Audit | undefined> = {
  name: 'audit',
  options: { audit: problemOfAudit },
  open(core) {
    const { options, system, bus, store, keys, riders, stages } = core;
    if (!options.audit) return { service: undefined };
    const opened = new Audit(options.audit, { system, bus, store, keys, riders });
    const { mailbox } = opened;
    stages.fill('record', opened.calls.gate);
    return {
      service: opened,
      restore: () => opened.open(),
      started: () => mailbox.send({ type: 'started' }),
      stop: (reason) => opened.close(reason),
    };
  },
};
