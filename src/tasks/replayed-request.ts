/** The request by which a kept call is run anew, and whether it may be: nobody waits for its answer but its task, or its client when that comes back. */
import type { ToolImplementation } from '../executors/execution.ts';
import type { StoredCall } from '../input/request-log.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { RecordedReply } from '../messages/input-messages.ts';
import type { Outcome } from '../messages/results.ts';
import { DIALECTS } from '../protocol/dialects/index.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { readImplementation } from '../protocol/meta.ts';
import { isLegacyRevision, isModernRevision } from '../protocol/revisions.ts';
import type { Tool } from '../protocol/types.ts';
import { IncomingRequest } from '../requests/request.ts';
import type { TaskRecord } from './task-records.ts';

/** @param refused hears what the call is answered with where it does not come to run */
export function replayRequest(
  { tool, session }: Pick<TaskRecord, 'tool' | 'session'>,
  call: StoredCall,
  recorded: RecordedReply,
  refused: (outcome: Outcome) => void,
): ActiveRequest {
  const { revision } = call;
  if (!isLegacyRevision(revision) && !isModernRevision(revision))
    throw new ProtocolError(ErrorCode.InternalError, `this server no longer supports revision ${revision}`);
  const nowhere = { address: 'task/nowhere', send: (): void => {}, announce: (): void => {} };
  const client = {
    dialect: DIALECTS[revision],
    info: readImplementation(call.info, 'info'),
    capabilities: call.capabilities,
    logLevel: undefined,
    principal: call.principal,
    // What it asks goes to the task; its session may be gone.
    session: session === undefined ? undefined : { id: session, mailbox: nowhere },
  };
  const operation = {
    method: 'tools/call',
    name: tool,
    arguments: call.arguments,
    input: undefined,
    task: undefined,
  } as const;
  const requests = {
    address: 'task/requests',
    send(mail: Parameters<ActiveRequest['requests']['send']>[0]): void {
      if (mail.type !== 'answer' || mail.request.settled) return;
      mail.request.settled = true;
      const { outcome } = mail;
      if (!(outcome.ok && outcome.result.kind === 'task created')) refused(outcome);
    },
  };
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
  );
  request.recorded = recorded;
  return request;
}

/**
 * Nobody can tell how far a handler came that worked when its process ended. It is run anew where that is known to be no harm:
 * its tool says so, or it has recorded steps, and so was written for it; a statechart goes on at the place that was kept. One that waited for an answer stood where every
 * handler that asks must bear to be run anew.
 *
 * @throws {ProtocolError} where it may not be
 */
export function checkRerun(
  stood: 'working' | 'input_required',
  recorded: RecordedReply | undefined,
  { rerun }: ToolImplementation,
  { name, annotations = {} }: Tool,
): void {
  if (rerun === true) return;
  const { steps = {}, place } = recorded ?? {};
  const goesOn = Object.keys(steps).length > 0 || place !== undefined;
  const harmless = annotations.readOnlyHint === true || annotations.idempotentHint === true || goesOn;
  if (rerun === undefined && (stood === 'input_required' || harmless)) return;
  throw new ProtocolError(
    ErrorCode.InternalError,
    `the process restarted while tool "${name}" ran this task, and the outcome is unknown. Find out what was done before you call it again`,
  );
}
