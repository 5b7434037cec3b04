/** The approvals of a server for viewers with control: what waits for people, and their decisions. */
import { authOf } from '../../core/messages/auth.ts';
import { LOCAL } from '../../core/protocol/principals.ts';
import { ApprovalError, FAULT_STATUS } from '../../features/approvals/approval-error.ts';
import type { Approvals } from '../../features/approvals/approval-interface.ts';
import type { ApprovalControl, ApprovalsView } from '../calls/call-messages.ts';
import { InputError } from '../http/viewer-input.ts';

/** @throws {InputError} */
export function approvalsView(approvals: Approvals): Promise<ApprovalsView> {
  return translated(async () => {
    const [open, grants] = await Promise.all([approvals.list(), approvals.grants()]);
    return { open, grants };
  });
}

/**
 * Carries out a decision. A viewer with control of the inspector can stop the server and call its tools, so it has every scope here;
 * a policy that names principals or claims is met by those only.
 *
 * @returns the outcome in words
 * @throws {InputError}
 */
export function decideAs(approvals: Approvals, command: ApprovalControl): Promise<string> {
  const { approval, person, action, reason } = command;
  const said = reason === undefined ? {} : { reason };
  return translated(async () => {
    if (action === 'revoke') {
      await approvals.revoke(approval, { principal: person, ...said });
      return `revoked ${approval}`;
    }
    const { state } = await approvals.decide(approval, {
      approver: { principal: person, scopes: authOf(LOCAL).scopes },
      ...{ decision: action, via: 'inspector', ...said },
      ...(action === 'approve' && command.remember ? { remember: true } : {}),
    });
    return `${approval} is ${state}`;
  });
}

async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApprovalError) throw new InputError(FAULT_STATUS[error.fault], error.message);
    throw error;
  }
}
