/** The mailbox of an interactive request, and its messages to the task that it becomes. Types only. */

import type { InputRequest, Question, RepliedMail } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { ContinuationMail } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome } from '../../core/messages/results.ts';
import type { JsonObject } from '../../core/protocol/json.ts';

/** The run of a handler, as its interactive request uses it. */
export interface HandlerRun {
  /** Continues the handler for a newer request of its client. */
  continueFor(request: RequestView): void;
  /** The results of completed steps, as far as they are JSON. */
  steps(): JsonObject;
  /** Called when it begins or ends waiting for its client. */
  waits(waiting: boolean): void;
}

/** The messages to the task that carries an interactive request. */
export type CarryingMail =
  | ContinuationMail
  /** This request has become the task; respond with the task. */
  | { readonly type: 'created'; readonly request: RequestView }
  /** Its handler asks for input; `key` identifies the input request to its interactive request. */
  | { readonly type: 'asked'; readonly key: string; readonly request: InputRequest }
  /** Its handler no longer waits for these, by its own names. */
  | { readonly type: 'dropped'; readonly keys: readonly string[] };

/** The messages of an interactive request, from its first input request to its end. */
export type InteractiveRequestMail =
  | ContinuationMail
  /** Its handler asks for input. */
  | { readonly type: 'ask'; readonly questions: readonly Question[] }
  /** The handler has asked everything of this turn: send the input requests. */
  | { readonly type: 'collected' }
  /** The client has replied to one input request. */
  | RepliedMail
  /** Its handler no longer waits for these answers. */
  | { readonly type: 'dropped'; readonly keys: readonly string[]; readonly reason: Error }
  /** The client has retried with another request. */
  | { readonly type: 'resumed'; readonly request: RequestView; readonly responses: Readonly<Record<string, unknown>> }
  /** The request that carries it becomes this task: respond with the task, and send everything else to it. */
  | { readonly type: 'detach'; readonly task: Mailbox<CarryingMail> }
  /** The request that carries it was ended by its client or by its deadline. */
  | { readonly type: 'aborted'; readonly reason: Error }
  /** No answer came in time, or it was evicted. */
  | { readonly type: 'expired'; readonly reason: Error }
  /** Its handler has ended, and so does the task that it has become. */
  | { readonly type: 'task ends'; readonly outcome: Outcome }
  /** The data behind this response is durable, or the reason why it is not. */
  | { readonly type: 'stored'; readonly request: RequestView; readonly outcome: Outcome; readonly error?: unknown };
