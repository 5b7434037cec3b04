/** The time that the user of a session is given to answer: the request's own is for the handler. */
import type { Timer } from '../clock.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { InteractiveRequestOptions } from './interactive-request-options.ts';

/** @returns what ends it, and gives the request its own time again, anew */
export function answerTimeout(
  { askMs, clock }: InteractiveRequestOptions,
  request: ActiveRequest,
  expired: () => void,
): Timer {
  const { timeoutMs } = request;
  request.requests.send({ type: 'allow', request, timeoutMs: askMs + 1_000 });
  const timer = clock.after(askMs, expired);
  return {
    cancel() {
      timer.cancel();
      if (!request.settled) request.requests.send({ type: 'allow', request, timeoutMs });
    },
  };
}
