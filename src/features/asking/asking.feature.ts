/** Asking: handlers ask their clients for input, and a request that asks may be continued by another process. */
import type { ToolImplementation } from '../../core/execution/execution.ts';
import { ANSWER_TOOL } from '../../core/protocol/views.ts';
import type { Feature } from '../../core/server/feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import type { AskerOptions } from './asker.ts';
import { AskingContext, modelFor } from './asking-context.ts';
import { InteractiveRequests } from './interactive-requests.ts';
import { RequestLog } from './request-log.ts';

export interface AskingService {
  readonly interactive: InteractiveRequests;
  readonly requestLog: RequestLog;
}

export const asking: Feature<AskingService> = {
  name: 'asking',
  open(core) {
    const throughModel = core.options.askThroughModel === true;
    const { system, keys, limits, quotas, store, stages, elements } = core;
    const requestLog = new RequestLog({ system, limits, store });
    const interactive = new InteractiveRequests({
      ...{ system, keys, requestLog, limits, quotas },
      audit: core.service(audit)?.mailbox,
    });
    const modelOf = (implementation: ToolImplementation | undefined): AskerOptions['model'] =>
      implementation && throughModel && elements.catalogues.tools.get(ANSWER_TOOL)
        ? modelFor(implementation)
        : undefined;
    // A task asks through its own requests.
    elements.extendContext = (context) =>
      new AskingContext(context, interactive, context.mode === 'task' ? undefined : modelOf(context.implementation));
    stages.fill('resume', (request, _, again) => !interactive.continues(request, again));
    if (throughModel) stages.fill('answer', (request) => !interactive.answers(request));
    return {
      service: { interactive, requestLog },
      holdsRequests: interactive,
      handOver: () => interactive.leave(),
      finish: (reason) => interactive.stop(reason),
    };
  },
};
