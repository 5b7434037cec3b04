/** The errors of calls on handles, with messages for the model. */

import type { HandleView } from './handle-messages.ts';

type HandleFault =
  /** The handle does not exist or belongs to another principal; the caller cannot distinguish the two. */
  | 'unknown'
  /** Its lifetime is over. */
  | 'expired'
  /** The event is not accepted, now or at all, or its data cannot be stored. */
  | 'refused'
  /** The instance has ended. */
  | 'ended'
  /** The machine failed, or the event crashed it twice and was quarantined. */
  | 'failed'
  /** Too many calls are queued, or there are too many handles. */
  | 'busy'
  /** The change could not be made durable. */
  | 'storage';

const FAULTS: readonly unknown[] = ['unknown', 'expired', 'refused', 'ended', 'failed', 'busy', 'storage'];
const HELPFUL_TOOLS: readonly unknown[] = ['get', 'list', 'create'];

type HelpfulTool = 'get' | 'list' | 'create';

export function isHandleFault(value: unknown): value is HandleFault {
  return FAULTS.includes(value);
}

export function isHelpfulTool(value: unknown): value is HelpfulTool {
  return HELPFUL_TOOLS.includes(value);
}

export class HandleError extends Error {
  override readonly name = 'HandleError';
  readonly reason: HandleFault;
  /** The events that are accepted instead, if the event was rejected. */
  readonly next: Pick<HandleView, 'accepts' | 'deadEnd'> | undefined;
  /** The tools of the machine that help now. */
  readonly tools: readonly HelpfulTool[];
  /** The id of the entry in the operator's log. */
  readonly incident: string | undefined;

  constructor(
    reason: HandleFault,
    message: string,
    more: {
      readonly next?: Pick<HandleView, 'accepts' | 'deadEnd'>;
      readonly tools?: readonly HelpfulTool[];
      readonly incident?: string;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.reason = reason;
    this.next = more.next;
    this.tools = more.tools ?? [];
    this.incident = more.incident;
  }
}
