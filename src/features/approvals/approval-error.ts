/** The error of a decision about an approval. */

/** The reason for an error of `server.approvals`. */
export type ApprovalFault =
  /** An argument is none. */
  | 'input'
  /** There is no approval or grant with this id. */
  | 'unknown'
  /** It was decided, used, or has expired before. */
  | 'closed'
  /** The policy does not let this person decide. */
  | 'not an approver'
  /** Other nodes have changed the approval before each attempt. Nothing was stored. */
  | 'conflict'
  /** The store has failed; the message says whether anything was stored. */
  | 'store';

/** The statuses of HTTP for the pages of people and for the inspector. */
export const FAULT_STATUS: Readonly<Record<ApprovalFault, number>> = {
  input: 400,
  unknown: 404,
  'not an approver': 403,
  closed: 409,
  conflict: 409,
  store: 503,
};

/** Thrown by the methods of `server.approvals`. The message says what to do, and has no argument of a call. */
export class ApprovalError extends Error {
  override readonly name = 'ApprovalError';
  readonly fault: ApprovalFault;

  constructor(fault: ApprovalFault, message: string, options?: ErrorOptions) {
    super(`approvals: ${message}`, options);
    this.fault = fault;
  }
}
