/** Inner requests: those that a script makes on behalf of the request that runs it. They pass the same gates as requests of clients. */
import type { Auth } from '../messages/auth.ts';
import type { CallVia } from '../messages/authorization-rule.ts';
import type { ClientFacts } from '../messages/client-facts.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { RequestsMail } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { RequestSpan } from '../messages/spans.ts';
import type { Operation } from '../protocol/operations.ts';
import { ActiveRequest, activeRequestOf } from './active-request.ts';

export interface InnerRequest {
  readonly id: string;
  readonly operation: Operation;
  readonly servedBy: string;
  readonly client: ClientFacts;
  readonly auth: Auth | undefined;
  readonly via: CallVia;
  /** The owner of what its handler opens elsewhere: its key, and whether several clients have it. */
  readonly owner: { readonly key: string; readonly several: boolean };
  /** Receives its outcome, and what else a request sends to the table that admitted it. */
  readonly requests: Mailbox<RequestsMail>;
  /** The inspection record that caused it. */
  readonly cause: number;
  /** Milliseconds of the server's clock. */
  readonly now: number;
  readonly timeoutMs: number;
  readonly span: RequestSpan | undefined;
}

const INNER = new WeakMap<object, Pick<InnerRequest, 'via' | 'owner'>>();

/** Creates an inner request, which counts as admitted by the table of its creator. */
export function innerRequest(given: InnerRequest): RequestView {
  const { id, operation, servedBy, client, auth, requests, cause, now, timeoutMs } = given;
  const request = new ActiveRequest(
    id,
    operation,
    servedBy,
    client,
    undefined,
    undefined,
    undefined,
    requests,
    cause,
    undefined,
    id,
    0,
    auth,
  );
  request.take('admit');
  request.admitted = now;
  request.timeoutMs = timeoutMs;
  request.deadline = now + timeoutMs;
  request.span = given.span;
  INNER.set(request, given);
  return request;
}

/** The call of a script that a request is; undefined for a request of a client. */
export function viaOf(request: object): CallVia | undefined {
  return INNER.get(request)?.via;
}

/** The owner on whose behalf the handler of an inner request makes calls elsewhere; undefined for a request of a client. */
export function innerOwnerOf(request: RequestView): InnerRequest['owner'] | undefined {
  return INNER.get(request)?.owner;
}

/** Ends an inner request before its handler has ended. @returns false if it has its outcome */
export function endInner(request: RequestView, event: 'cancel' | 'expire', reason: Error): void {
  const active = activeRequestOf(request);
  active.take(event);
  // It may be settled by a question, and its handler waits.
  active.abort(reason);
}
