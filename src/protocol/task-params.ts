/** Tasks as the wire knows them: what a client says to have them, and what it asks of one. */
import { ErrorCode, misfit, ProtocolError } from './errors.ts';
import { isObject } from './json.ts';
import type { ClientCapabilities } from './types.ts';

/** The extension of the modern era (`io.modelcontextprotocol/tasks`, SEP-2663). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

type Params = Readonly<Record<string, unknown>> | undefined;

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** What is asked of one task. */
export type OneTask =
  | { readonly method: 'tasks/get' | 'tasks/cancel' | 'tasks/result'; readonly taskId: string }
  | {
      readonly method: 'tasks/update';
      readonly taskId: string;
      /** By key; a key that nobody waits for is ignored. */
      readonly responses: Readonly<Record<string, unknown>>;
    };

export type ListTasks = { readonly method: 'tasks/list'; readonly cursor: string | undefined };

export const readTask =
  (method: 'tasks/get' | 'tasks/cancel' | 'tasks/result') =>
  (params: Params): OneTask => ({ method, taskId: taskIdOf(params) });

export function readUpdateTask(params: Params): OneTask {
  const taskId = taskIdOf(params);
  const responses = params?.inputResponses;
  if (!isObject(responses)) throw misfit('inputResponses', 'an object', responses);
  return { method: 'tasks/update', taskId, responses };
}

export function readListTasks(params: Params): ListTasks {
  const cursor = params?.cursor;
  if (cursor !== undefined && typeof cursor !== 'string') throw misfit('cursor', 'a string', cursor);
  return { method: 'tasks/list', cursor };
}

/**
 * The time to live that `params.task` of a call asks for (2025-11-25 tasks, "Task Parameters").
 *
 * @returns milliseconds; undefined where it asks for none
 * @throws {ProtocolError} -32602 for what is no such parameter
 */
export function readTtl(task: unknown): number | undefined {
  if (!isObject(task)) throw misfit('task', 'an object', task);
  const { ttl } = task;
  if (ttl === undefined) return undefined;
  if (typeof ttl !== 'number' || !(ttl >= 1)) throw misfit('task.ttl', 'milliseconds, at least 1', ttl);
  return Math.min(Math.ceil(ttl), Number.MAX_SAFE_INTEGER);
}

/** Whether a request says that its client takes tasks (ext-tasks, "Capability Negotiation"). */
export function declaresTasks({ extensions }: ClientCapabilities): boolean {
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION]);
}

/** What a modern client is told that has to take tasks, and does not say so. */
export function tasksNotDeclared(what: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.MissingRequiredClientCapability,
    `${what} needs a client that takes tasks: declare extensions["${TASKS_EXTENSION}"] in the request's client capabilities`,
    { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
  );
}

/** The same words for a task that never was, that is forgotten, and that is another's: nobody learns which. */
export function unknownTask(taskId: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `params.taskId: there is no task "${taskId.slice(0, 100)}" (any more): a task is forgotten when its time to live is over`,
  );
}

/** A task that exists, as far as a damaged store can tell: never the same words as for one that does not. */
export function damagedTask(taskId: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InternalError,
    `params.taskId: the storage of this server is damaged where the task "${taskId.slice(0, 100)}" is: nothing was done; ask the operator to restore a copy`,
  );
}

function taskIdOf(params: Params): string {
  const taskId = params?.taskId;
  if (typeof taskId !== 'string') throw misfit('taskId', 'a string', taskId);
  return taskId;
}
