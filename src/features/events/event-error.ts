/** The error of an event that a program could not emit. */

/** The reason for the error. */
export type EventFault =
  /** No event type of this name is registered. */
  | 'unknown'
  /** The payload, the id or the time is invalid. */
  | 'invalid'
  /** A limit is reached; the message names it. Nothing was stored. */
  | 'limit'
  /** Too many events of this topic wait for the store. Nothing was stored; retry. */
  | 'busy'
  /** The store has failed; the message says whether the event was stored. */
  | 'store';

/** Thrown by `emit`. The message names the event type, the problem and the fix. */
export class EventError extends Error {
  override readonly name = 'EventError';
  readonly fault: EventFault;

  constructor(fault: EventFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}
