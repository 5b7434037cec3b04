/** What a call on a handle is refused with, in words for the model that called. */

export type HandleFault =
  /** There is no such handle, or it is another's: nobody can tell which. */
  | 'unknown'
  /** Its time was over. */
  | 'expired'
  /** The event is not taken: not now, not ever, or its data cannot be kept. */
  | 'refused'
  /** It has come to its end, or was ended. */
  | 'ended'
  /** Its machine failed, or the event crashed it twice and was set aside. */
  | 'failed'
  /** Too much is waiting, or there are too many. */
  | 'busy'
  /** What it came to could not be made durable, so it has not happened. */
  | 'storage';

export class HandleError extends Error {
  override readonly name = 'HandleError';
  readonly reason: HandleFault;
  /** The events that are taken now, where the event was not. */
  readonly accepts: readonly string[] | undefined;
  /** What an operator finds in the log. */
  readonly incident: string | undefined;

  constructor(
    reason: HandleFault,
    message: string,
    more: { readonly accepts?: readonly string[]; readonly incident?: string; readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.reason = reason;
    this.accepts = more.accepts;
    this.incident = more.incident;
  }
}
