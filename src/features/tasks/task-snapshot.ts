/** The state of a task that survives a restart. Types only. */

import type { InputRequest } from '../../core/messages/client-input.ts';
import type { Outcome } from '../../core/messages/results.ts';
import type { TaskStatus } from '../../core/protocol/task-params.ts';

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
