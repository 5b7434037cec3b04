/**
 * Creates the request with which a stored call runs again. Its answer goes to its task, or waits for its client to return.
 */

import { authOf, restoredAuth } from '../../core/messages/auth.ts';
import type { RecordedReply } from '../../core/messages/client-input.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome } from '../../core/messages/results.ts';
import { DIALECTS } from '../../core/protocol/dialects/index.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { readImplementation } from '../../core/protocol/meta.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import { isLegacyRevision, isModernRevision } from '../../core/protocol/revisions.ts';
import { IncomingRequest, oneOutcome, setRecorded } from '../../core/requests/active-request.ts';
import type { StoredCall } from '../asking/request-log.ts';
import type { TaskRecord } from './task-records.ts';

/** @param refused called with the error if the call does not start */
export function replayRequest(
  { tool, session }: Pick<TaskRecord, 'tool' | 'session'>,
  call: StoredCall,
  recorded: RecordedReply,
  refused: (outcome: Outcome) => void,
): RequestView {
  const { revision } = call;
  if (!isLegacyRevision(revision) && !isModernRevision(revision))
    throw new ProtocolError(ErrorCode.InternalError, `this server no longer supports revision ${revision}`);
  const nowhere = { address: 'task/nowhere', send: (): void => {} };
  const client = {
    dialect: DIALECTS[revision],
    info: readImplementation(call.info, 'info'),
    capabilities: call.capabilities,
    logLevel: undefined,
    principal: call.principal,
    // Its task receives its questions; its session may no longer exist.
    session: session === undefined ? undefined : { id: session, mailbox: nowhere, rootsChanges: 0 },
  };
  const operation = {
    method: 'tools/call',
    name: tool,
    arguments: call.arguments,
    input: undefined,
    task: undefined,
  } as const;
  // No other call has this address, by which a gateway distinguishes clients.
  const requests = oneOutcome(`task/requests/${recorded.id}`, (outcome) => {
    if (!(outcome.ok && outcome.result.kind === 'task created')) refused(outcome);
  });
  const request = new IncomingRequest(
    call.id,
    operation,
    'tools',
    client,
    call.meta,
    undefined,
    undefined,
    requests,
    0,
    undefined,
    call.id,
    0,
    call.auth ? restoredAuth(call.auth) : call.principal === ANONYMOUS ? undefined : authOf(call.principal),
  );
  setRecorded(request, recorded);
  return request;
}
