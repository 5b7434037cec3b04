/** Extends the deadline of a legacy request while its user answers a question. The request's own timeout is for the handler. */
import type { Timer } from '../clock.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { InteractiveRequestOptions } from './interactive-request-options.ts';

/** @returns a timer whose cancellation restores the request's own timeout */
export function answerTimeout(
  { askMs, system }: InteractiveRequestOptions,
  request: ActiveRequest,
  expired: () => void,
): Timer {
  const { timeoutMs } = request;
  request.requests.send({ type: 'allow', request, timeoutMs: askMs + 1_000 });
  const timer = system.clock.after(askMs, expired);
  return {
    cancel() {
      timer.cancel();
      if (!request.settled) request.requests.send({ type: 'allow', request, timeoutMs });
    },
  };
}
