/** What a task hears, and what it shows of itself: types only. */
import type { TaskStatus } from '../protocol/task-params.ts';
import type { ActiveRequest } from './active-request.ts';
import type { InputRequest, InteractiveRequestMail, Reply } from './input-messages.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestMail } from './request-messages.ts';
import type { Outcome } from './results.ts';

/** A task as it is now, before a dialect shows it. */
export interface TaskState {
  readonly id: string;
  readonly status: TaskStatus;
  readonly message: string | undefined;
  /** In the words of ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly ttlMs: number;
  readonly pollMs: number;
  /** What its client is to answer, by keys of which none is used twice in its life. */
  readonly inputs: Readonly<Record<string, InputRequest>>;
  /** What its handler came to; undefined until then, and for a task that was cancelled. */
  readonly outcome: Outcome | undefined;
}

/** Everything that a task is beside its call: what a restart must not change. Plain data. */
export interface TaskSnapshot {
  readonly status: TaskStatus;
  readonly message: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly outcome: Outcome | undefined;
  readonly questions: QuestionsSnapshot;
  /** By the names that its handler asked under, what was replied. */
  readonly replies: Readonly<Record<string, unknown>>;
}

export interface QuestionsSnapshot {
  readonly open: readonly { readonly key: string; readonly name: string; readonly request: InputRequest }[];
  /** Every key that was ever given out. */
  readonly keys: readonly string[];
}

export type TaskMail =
  /** A request about it. */
  | RequestMail
  /** This request has become it, and is answered with it. */
  | { readonly type: 'created'; readonly request: ActiveRequest }
  /** Its handler is run anew, behind this conversation. */
  | { readonly type: 'revived'; readonly conversation: Mailbox<InteractiveRequestMail> }
  /** Its handler asks; `key` names the question to its conversation. */
  | { readonly type: 'asked'; readonly key: string; readonly request: InputRequest }
  /** Its handler waits for these no longer, by the names that it asked under. */
  | { readonly type: 'dropped'; readonly keys: readonly string[] }
  /** A session has answered what it was asked; `key` is the task's own. */
  | { readonly type: 'replied'; readonly key: string; readonly reply: Reply }
  /** Its handler says how far it is. */
  | { readonly type: 'progressed'; readonly message: string }
  /** A request that waited for its end was ended before. */
  | { readonly type: 'left'; readonly request: ActiveRequest }
  /** Nobody wants it any more. */
  | { readonly type: 'cancel'; readonly reason: string }
  /** Its handler has ended. */
  | { readonly type: 'done'; readonly outcome: Outcome };
