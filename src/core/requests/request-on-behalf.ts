/** A request that this server makes itself, with the rights of the caller of another request. It passes all gates, and asks no person. */
import type { RequestView } from '../messages/request-view.ts';
import type { Outcome } from '../messages/results.ts';
import type { Operation } from '../protocol/operations.ts';
import { IncomingRequest, oneOutcome } from './active-request.ts';

/** A request, and its outcome. It has no deadline. */
export interface RequestOnBehalf {
  readonly request: RequestView;
  readonly answered: Promise<Outcome>;
}

/**
 * Makes a request for the caller of another. It still has to be sent through the gates.
 *
 * @param servedBy the actor that serves it, such as `tools`
 * @param address names it in the inspector
 */
export function requestOnBehalf(
  { client, auth, id }: Pick<RequestView, 'client' | 'auth' | 'id'>,
  operation: Operation,
  servedBy: string,
  address: string,
): RequestOnBehalf {
  let resolved: (outcome: Outcome) => void = () => {};
  const answered = new Promise<Outcome>((resolve) => {
    resolved = resolve;
  });
  const request = new IncomingRequest(
    id,
    operation,
    servedBy,
    { ...client, capabilities: {} },
    undefined,
    undefined,
    undefined,
    oneOutcome(address, resolved),
    0,
    undefined,
    id,
    0,
    auth,
  );
  return { request, answered };
}
