/** Asking: handlers ask their clients for input, and a request that asks may be continued by another process. */
import type { ToolImplementation } from '../../core/execution/execution.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import { ANSWER_TOOL } from '../../core/protocol/views.ts';
import { viaOf } from '../../core/requests/inner-requests.ts';
import type { Feature } from '../../core/server/feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import type { AskerOptions } from './asker.ts';
import { AskingContext, modelFor } from './asking-context.ts';
import { InteractiveRequests } from './interactive-requests.ts';
import { RequestLog } from './request-log.ts';

interface AskingService {
  readonly interactive: InteractiveRequests;
  readonly requestLog: RequestLog;
}

export const asking: Feature<AskingService> = {
  name: 'asking',
  open(core) {
    const throughModel = core.options.askThroughModel === true;
    const { system, keys, limits, quotas, store, stages, elements } = core;
    const log = new Lazy(() => new RequestLog({ system, limits, store }));
    const requests = new Lazy(
      () =>
        new InteractiveRequests({
          ...{ system, keys, limits, quotas },
          requestLog: log.value,
          audit: core.service(audit)?.mailbox,
        }),
    );
    const modelOf = (implementation: ToolImplementation | undefined): AskerOptions['model'] =>
      implementation && throughModel && elements.catalogues.tools.get(ANSWER_TOOL)
        ? modelFor(implementation)
        : undefined;
    // A task asks through its own requests.
    elements.extendContext = (context) =>
      new AskingContext(
        context,
        requests.value,
        // The model would answer the call of a script, which it does not see.
        context.mode === 'task' || viaOf(context.first) ? undefined : modelOf(context.implementation),
      );
    stages.fill('resume', (request, _, again) => !request.continues || !requests.value.continues(request, again));
    if (throughModel) stages.fill('answer', (request) => !requests.value.answers(request));
    return {
      service: {
        get interactive() {
          return requests.value;
        },
        get requestLog() {
          return log.value;
        },
      },
      holdsRequests: {
        // The store is read when a client returns.
        take: async (cells) => cells && requests.value.take(cells),
        drop: (cells, flush) => requests.value.drop(cells, flush),
        working: () => requests.created?.working() ?? [],
      },
      handOver() {
        // Only a durable store has what another process continues.
        if (store.durable) requests.value.leave();
      },
      finish: async (reason) => requests.created?.stop(reason),
    };
  },
};
