/** Tasks on the wire: how a client declares support, and the errors of requests that need it. */
import { ErrorCode, misfit, ProtocolError } from './errors.ts';
import { settingsIn } from './extensions.ts';
import { isObject } from './json.ts';
import type { ClientCapabilities } from './types.ts';

/** The tasks extension of the modern era (`io.modelcontextprotocol/tasks`, SEP-2663). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/**
 * The time to live in `params.task` of a call (2025-11-25 tasks, "Task Parameters").
 *
 * @returns milliseconds; undefined if none is requested
 * @throws {ProtocolError} -32602 for an invalid parameter
 */
export function readTtl(task: unknown): number | undefined {
  if (!isObject(task)) throw misfit('task', 'an object', task);
  const { ttl } = task;
  if (ttl === undefined || ttl === null) return undefined;
  if (typeof ttl !== 'number' || !(ttl >= 1)) throw misfit('task.ttl', 'milliseconds, at least 1', ttl);
  return Math.min(Math.ceil(ttl), Number.MAX_SAFE_INTEGER);
}

/** True if a request declares that its client supports tasks (ext-tasks, "Capability Negotiation"). */
export function declaresTasks({ extensions }: ClientCapabilities): boolean {
  return settingsIn(extensions, TASKS_EXTENSION) !== undefined;
}

/** The error for a modern client that needs task support but does not declare it. */
export function tasksNotDeclared(what: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.MissingRequiredClientCapability,
    `${what} needs a client with task support. Declare extensions["${TASKS_EXTENSION}"] in the request's client capabilities`,
    { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
  );
}

/**
 * The same message for a task that never existed, one that expired, and one of another principal, so that clients
 * cannot distinguish them.
 */
export function unknownTask(taskId: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `params.taskId: unknown task "${taskId.slice(0, 100)}". It never existed, or its time to live is over`,
  );
}

/** The error for a task that exists but whose stored data is damaged. It differs from the error for an unknown task. */
export function damagedTask(taskId: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InternalError,
    `params.taskId: the stored data of task "${taskId.slice(0, 100)}" is damaged. Nothing was done. Ask the operator to restore a backup`,
  );
}
