/** The error of an operation on state. */

/** The reason for an error of state. */
export type StateFault =
  /** The caller is anonymous and has no session: its state would be that of everybody. */
  | 'no caller'
  /** The key is not one. */
  | 'key'
  /** JSON cannot represent the value, or its schema rejects it. */
  | 'value'
  /** The schema rejects the stored value, or the stored data is damaged. */
  | 'stored'
  /** A limit is reached; the message names it. Nothing was stored. */
  | 'limit'
  /** Other nodes have changed the scope each time before this change. Nothing was stored. */
  | 'conflict'
  /** Too many operations wait for the scope. Nothing was begun. */
  | 'busy'
  /** The session has ended, and its state with it. */
  | 'ended'
  /** The store has failed; the message says whether anything was stored. */
  | 'store';

/** Thrown by the methods of `ctx.state`. The message names the key, the problem and the fix, and no stored value. */
export class StateError extends Error {
  override readonly name = 'StateError';
  readonly fault: StateFault;

  constructor(fault: StateFault, message: string, options?: ErrorOptions) {
    super(`state: ${message}`, options);
    this.fault = fault;
  }
}
