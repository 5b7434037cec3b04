/** Responds to a request: sends its outcome to the in-flight table that admitted it. */

import type { RequestView } from '../messages/request-view.ts';
import type { Outcome } from '../messages/results.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';

export function respond(request: RequestView, outcome: Outcome): void {
  request.requests.send({ type: 'answer', request, outcome });
}

/** The error for a request that a registry received but does not serve: the methods table and the registry disagree. */
export function misrouted({ operation }: RequestView, where: string): ProtocolError {
  return new ProtocolError(ErrorCode.MethodNotFound, `${where} does not serve ${operation.method}`);
}
