/** A principal whose data the server deletes, for the parts of the server that have some of it in memory. Types only. */

export interface ForgottenPrincipal {
  readonly principal: string;
  /** Receives what the sender waits for. The sender deletes the rows of the store afterwards. */
  readonly settling: Promise<void>[];
  /** Counts what only memory had. `kind`: the kind that its row in the store would have. */
  ended(kind: 'task', actor: string): void;
}
