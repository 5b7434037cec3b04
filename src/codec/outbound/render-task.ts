/** Shows a task in the dialect of a revision: 2025-11-25 and the extension have other members for the same, and judge a failed tool otherwise. Pure. */
import type { Outcome, Result } from '../../messages/results.ts';
import type { TaskState } from '../../messages/task-messages.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import type { WireError } from '../../protocol/errors.ts';
import type { CallToolResult } from '../../protocol/types.ts';

/** How what is inside of a task is shown. */
export interface TaskRenderer {
  result(result: Result): object;
  error(error: WireError): WireError;
}

/** A task with what its status has to say (ext-tasks, "Task Status"), or in 2025-11-25 as it is always shown ("Task"). */
export function renderTask(task: TaskState, dialect: Dialect, shows: TaskRenderer): object {
  return dialect.tasks === 'extension' ? { ...bare(task), ...detail(task, shows) } : older(task);
}

/** What the session of a task is told of it (2025-11-25 tasks, "Task Status Notification"). */
export function renderTaskStatus(task: TaskState): object {
  return older(task);
}

/** A task that has just been created: without what its status has to say. */
export function renderCreatedTask(task: TaskState, dialect: Dialect): object {
  return dialect.tasks === 'extension' ? bare(task) : { task: older(task) };
}

function bare({ id, status, message, createdAt, updatedAt, ttlMs, pollMs }: TaskState): object {
  return {
    taskId: id,
    status,
    ...(message === undefined ? {} : { statusMessage: message }),
    createdAt,
    lastUpdatedAt: updatedAt,
    ttlMs,
    pollIntervalMs: pollMs,
  };
}

function detail({ status, inputs, outcome }: TaskState, shows: TaskRenderer): object {
  if (status === 'input_required') return { inputRequests: inputs };
  if (!outcome) return {};
  return outcome.ok ? { result: shows.result(outcome.result) } : { error: shows.error(outcome.error) };
}

/** In 2025-11-25 a task whose tool reports a failure has failed itself, and its message says why (tasks, "Task Execution Errors"). */
function older({ id, status, message, createdAt, updatedAt, ttlMs, pollMs, outcome }: TaskState): object {
  const failure = outcome && failureOf(outcome);
  const statusMessage = failure ?? message;
  return {
    taskId: id,
    status: failure === undefined ? status : 'failed',
    ...(statusMessage === undefined ? {} : { statusMessage }),
    createdAt,
    lastUpdatedAt: updatedAt,
    ttl: ttlMs,
    pollInterval: pollMs,
  };
}

function failureOf(outcome: Outcome): string | undefined {
  if (!outcome.ok) return outcome.error.message;
  return outcome.result.kind === 'call' && outcome.result.result.isError ? saidBy(outcome.result.result) : undefined;
}

function saidBy({ content }: CallToolResult): string {
  const [text] = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  return text ?? 'the tool reports a failure';
}
