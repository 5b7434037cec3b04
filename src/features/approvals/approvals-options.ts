/** The options of approvals: `approve` of a tool, and `onApproval` of a server. */
import * as option from '../../core/protocol/option-rows.ts';
import type { ToolOption } from '../../core/registry/offers.ts';
import { problemOfPolicy } from './approval-policy.ts';

/** The path of the pages on which people decide, beside that of sign-ins. */
export const APPROVALS_PATH = '/approvals';

export const APPROVE: ToolOption = {
  name: 'approve',
  check: (value) => (typeof value === 'boolean' ? undefined : problemOfPolicy(value)),
  compile: ({ approve }) => (approve === undefined || approve === false ? {} : { approve }),
};

export const OPTIONS = { onApproval: option.functional };
