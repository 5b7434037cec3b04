/** The mailbox of a task. Types only. */

import type { RepliedMail } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestMail } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { CarryingMail, InteractiveRequestMail } from '../asking/input-messages.ts';

export type TaskMail =
  /** A request about it. */
  | RequestMail
  /** From its interactive request. */
  | CarryingMail
  /** Its handler runs again, with this interactive request. */
  | { readonly type: 'revived'; readonly interactiveRequest: Mailbox<InteractiveRequestMail> }
  /** A session has answered; `key` is the task's own. */
  | RepliedMail
  /** A request that waited for its end was cancelled or timed out. */
  | { readonly type: 'waiter aborted'; readonly request: RequestView }
  /** The task is cancelled. */
  | { readonly type: 'cancel'; readonly reason: string };
