/** The mailbox of a task, and its public state. Types only. */
import type { TaskStatus } from '../protocol/task-params.ts';
import type { InputRequest, InteractiveRequestMail, Reply } from './input-messages.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestMail } from './request-messages.ts';
import type { RequestView } from './request-view.ts';
import type { Outcome } from './results.ts';

/** The current state of a task, before a dialect renders it. */
export interface TaskState {
  readonly id: string;
  readonly status: TaskStatus;
  readonly message: string | undefined;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly ttlMs: number;
  readonly pollMs: number;
  /** The input requests for its client. No key is used twice in the life of a task. */
  readonly inputs: Readonly<Record<string, InputRequest>>;
  /** The outcome of its handler; undefined until then, and for a cancelled task. */
  readonly outcome: Outcome | undefined;
}

/** The state of a task without its call, which survives a restart. Plain data. */
export interface TaskSnapshot {
  readonly status: TaskStatus;
  readonly message: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly outcome: Outcome | undefined;
  readonly questions: QuestionsSnapshot;
  /** The replies, by the handler's names for the input requests. */
  readonly replies: Readonly<Record<string, unknown>>;
}

export interface QuestionsSnapshot {
  readonly open: readonly { readonly key: string; readonly name: string; readonly request: InputRequest }[];
  /** All keys that were ever assigned. */
  readonly keys: readonly string[];
}

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
  | { readonly type: 'left'; readonly request: RequestView }
  /** The task is cancelled. */
  | { readonly type: 'cancel'; readonly reason: string }
  /** Its handler has ended. */
  | { readonly type: 'done'; readonly outcome: Outcome };
