/** The mailbox of a task. Types only. */

import type { InputRequest, Reply } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestMail } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome } from '../../core/messages/results.ts';
import type { InteractiveRequestMail } from '../asking/input-messages.ts';

export type TaskMail =
  /** A request about it. */
  | RequestMail
  /** This request has become the task; respond with the task. */
  | { readonly type: 'created'; readonly request: RequestView }
  /** Its handler runs again, with this interactive request. */
  | { readonly type: 'revived'; readonly conversation: Mailbox<InteractiveRequestMail> }
  /** Its handler asks for input; `key` identifies the input request to its interactive request. */
  | { readonly type: 'asked'; readonly key: string; readonly request: InputRequest }
  /** Its handler no longer waits for these, by its own names. */
  | { readonly type: 'dropped'; readonly keys: readonly string[] }
  /** A session has answered; `key` is the task's own. */
  | { readonly type: 'replied'; readonly key: string; readonly reply: Reply }
  /** Its handler reports progress. */
  | { readonly type: 'progressed'; readonly message: string }
  /** A request that waited for its end was cancelled or timed out. */
  | { readonly type: 'waiter aborted'; readonly request: RequestView }
  /** The task is cancelled. */
  | { readonly type: 'cancel'; readonly reason: string }
  /** Its handler has ended. */
  | { readonly type: 'done'; readonly outcome: Outcome };
