/** The reasons for which a message is not delivered: for good, or until the next attempt. */
import { HandleError } from '../handle-error.ts';

/** The reasons that are no errors of instances. `hops`: the chain of messages is too long. `late`: nothing has accepted it in time. */
type UndeliverableReason = 'hops' | 'late' | HandleError['reason'];

/** A message that no further attempt delivers. */
export class Undeliverable extends Error {
  override readonly name = 'Undeliverable';
  readonly reason: UndeliverableReason;

  constructor(reason: UndeliverableReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Returns whether a failed delivery is tried again: after a failure of the store, of a link, or for want of room. */
export function isRetried(error: unknown): boolean {
  if (error instanceof Undeliverable) return false;
  return !(error instanceof HandleError) || error.reason === 'busy' || error.reason === 'storage';
}

/** The reason of a failed delivery. */
export function reasonOf(error: unknown): UndeliverableReason {
  return error instanceof Undeliverable || error instanceof HandleError ? error.reason : 'failed';
}
