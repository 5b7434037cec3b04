/** Answers a request: its outcome goes back to the in-flight table that admitted it. */
import type { Outcome } from '../messages/answers.ts';
import type { InFlight } from '../messages/in-flight.ts';

export function settle(request: InFlight, outcome: Outcome): void {
  request.requests.send({ type: 'answer', request, outcome });
}
