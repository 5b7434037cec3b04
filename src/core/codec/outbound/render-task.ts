/**
 * Renders a task in a dialect: 2025-11-25 and the extension name members differently, and treat a failed tool
 * differently. Pure.
 */
import type { Outcome, Result, TaskState } from '../../messages/results.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import type { WireError } from '../../protocol/errors.ts';
import type { CallToolResult } from '../../protocol/types.ts';

/** Renders what a task contains. */
export interface TaskRenderer {
  result(result: Result): object;
  error(error: WireError): WireError;
}

/** A task with the members of its status (ext-tasks, "Task Status"); in 2025-11-25 always the same members ("Task"). */
export function renderTask(task: TaskState, dialect: Dialect, shows: TaskRenderer): object {
  return dialect.tasks === 'extension' ? { ...bare(task), ...detail(task, shows) } : older(task);
}

/** The task in a status notification to its session (2025-11-25 tasks, "Task Status Notification"). */
export function renderTaskStatus(task: TaskState): object {
  return older(task);
}

/** A new task, without the members of its status. */
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

/**
 * In 2025-11-25, a task whose tool returns an error has failed, and its message gives the reason (tasks, "Task
 * Execution Errors").
 */
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
  return text ?? 'the tool returned an error';
}
