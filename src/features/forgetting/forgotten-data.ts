/** Counts what the server has deleted of a principal. Types only. */

/** Counts of what was deleted. All are 0 the second time. */
export interface ForgottenData {
  /** Instances of machines that belong to the principal: those behind its handles, and those with the principal as their key. */
  readonly instances: number;
  readonly tasks: number;
  /** Calls that wait for an answer. */
  readonly questions: number;
  /** Durable sessions. Their connections are closed. */
  readonly sessions: number;
  /** Scopes of `ctx.state`: that of the principal, and those of its sessions. */
  readonly state: number;
  /** Approvals of calls of the principal, and the grants that they left. */
  readonly approvals: number;
  /** Runs of scripts. */
  readonly runs: number;
  /** Subscriptions to events by webhook. */
  readonly subscriptions: number;
}
