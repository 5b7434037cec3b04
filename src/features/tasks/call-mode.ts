/** Selects how a call of a tool runs: as a request, as a task, or as a request that may become a task. */
import type { TaskSupport } from '../../core/execution/execution.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { declaresTasks, readTtl, tasksNotDeclared } from '../../core/protocol/task-params.ts';

export type CallMode =
  | { readonly as: 'request' }
  | { readonly as: 'task'; readonly ttlMs: number }
  | { readonly as: 'request, then task' };

const REQUEST: CallMode = { as: 'request' };
const LATER: CallMode = { as: 'request, then task' };

interface TaskOffer {
  readonly support: TaskSupport;
  readonly tool: string;
  /** Maximum lifetime of a task, in milliseconds. */
  readonly taskTtlMs: number;
  /** True if the server announces tasks to clients. */
  readonly offered: boolean;
}

/** @throws {ProtocolError} for a mode that the tool or its client does not support */
export function callModeOf(
  { operation, client }: RequestView,
  { support, tool, taskTtlMs, offered }: TaskOffer,
): CallMode {
  const asked = operation.method === 'tools/call' ? operation.task : undefined;
  switch (client.dialect.tasks) {
    case 'none':
      if (support !== 'required') return REQUEST;
      throw unfit(`tool "${tool}" runs only as a task, and revision ${client.dialect.revision} has no tasks`);
    case 'asked':
      // If no tool can be a task, the parameter is ignored (2025-11-25 tasks, "Task Support and Handling").
      if (!offered) return REQUEST;
      if (asked === undefined && support === 'required')
        throw unfit(`tool "${tool}" runs only as a task. Call it with params.task`);
      if (asked === undefined) return REQUEST;
      if (support === 'never') throw unfit(`tool "${tool}" cannot run as a task. Call it without params.task`);
      return { as: 'task', ttlMs: Math.min(readTtl(asked) ?? Number.POSITIVE_INFINITY, taskTtlMs) };
    case 'extension': {
      if (support === 'never') return REQUEST;
      const declared = declaresTasks(client.capabilities);
      if (support === 'allowed') return declared ? LATER : REQUEST;
      if (!declared) throw tasksNotDeclared(`tool "${tool}"`);
      return { as: 'task', ttlMs: taskTtlMs };
    }
  }
}

export function unfit(why: string): ProtocolError {
  return new ProtocolError(ErrorCode.MethodNotFound, why);
}
