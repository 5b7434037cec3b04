/** Asking: handlers ask their clients for input, and a request that asks may be continued by another process. */
import type { ToolImplementation } from '../../core/execution/execution.ts';
import { ANSWER_TOOL } from '../../core/protocol/views.ts';
import type { Feature } from '../../core/server/feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import { InteractiveRequests } from './interactive-requests.ts';
import { modelFor, RequestContext, type RunOptions } from './request-context.ts';
import { RequestLog } from './request-log.ts';

export interface AskingService {
  readonly interactive: InteractiveRequests;
  readonly requestLog: RequestLog;
  /** Describes how to ask the model that calls a tool; undefined if it cannot be asked. */
  modelOf(implementation: ToolImplementation | undefined): RunOptions['model'];
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
    const modelOf = (implementation: ToolImplementation | undefined): RunOptions['model'] =>
      implementation && throughModel && elements.catalogues.tools.get(ANSWER_TOOL)
        ? modelFor(implementation)
        : undefined;
    elements.contextOf = (request, implementation) => {
      const model = throughModel ? modelOf(implementation) : undefined;
      return new RequestContext(request, interactive, implementation?.timeoutMs, model && { model });
    };
    stages.fill('resume', (request, _, again) => !interactive.continues(request, again));
    if (throughModel) stages.fill('answer', (request) => !interactive.answers(request));
    return {
      service: { interactive, requestLog, modelOf },
      holdsRequests: interactive,
      handOver: () => interactive.leave(),
      finish: (reason) => interactive.stop(reason),
    };
  },
};
