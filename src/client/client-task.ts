/** A task of a server, as a client follows it: polls its status, answers its input requests, and returns its result. */
import { type Clock, pause } from '../core/kernel/clock.ts';
import { isJsonObject, isObject, type JsonObject } from '../core/protocol/json.ts';
import { isToolResult } from '../core/protocol/result-shape.ts';
import type { Era } from '../core/protocol/revisions.ts';
import type { TaskStatus } from '../core/protocol/task-params.ts';
import type { CallToolResult } from '../core/protocol/types.ts';
import { ClientError, ErrorResponse } from './client-errors.ts';

/** The requests that a task needs of its client. */
interface TaskRequests {
  readonly server: string;
  readonly clock: Clock;
  era(): Era;
  request(method: string, params: JsonObject, signal: AbortSignal | undefined): Promise<unknown>;
  answerAll(inputRequests: unknown, signal: AbortSignal | undefined): Promise<JsonObject>;
  /** Keeps the process alive while the work lasts. */
  busy<T>(work: () => Promise<T>): Promise<T>;
}

const DEFAULT_POLL_MS = 1_000;
const SHORTEST_POLL_MS = 50;
const LONGEST_POLL_MS = 60_000;
/** Consecutive polls that may fail because the server cannot be reached: a task outlives its connection. */
const MAX_FAILED_POLLS = 20;

/** Keys of answered requests: the oldest are forgotten. */
const MAX_REMEMBERED = 1_024;

const STATUSES: ReadonlySet<unknown> = new Set<TaskStatus>([
  'working',
  'input_required',
  'completed',
  'failed',
  'cancelled',
]);

export class ClientTask {
  /** The server's id: {@link Client.task} resumes the task with it, in another process, too. */
  readonly id: string;
  readonly #requests: TaskRequests;
  #status: TaskStatus | undefined;
  #message: string | undefined;
  #pollMs = DEFAULT_POLL_MS;
  /** Keys of input requests that were answered: a poll may show them once more. */
  readonly #answered = new Set<string>();
  #result: Promise<CallToolResult> | undefined;

  constructor(id: string, requests: TaskRequests, created?: Readonly<Record<string, unknown>>) {
    this.id = id;
    this.#requests = requests;
    if (created) this.#read(created);
  }

  /** The status as the last poll found it; undefined before the first. */
  get status(): TaskStatus | undefined {
    return this.#status;
  }

  /** The server's explanation of the status. */
  get message(): string | undefined {
    return this.#message;
  }

  /** Asks the server for the status. @throws {ErrorResponse} if the server does not know the task */
  async refresh(signal?: AbortSignal): Promise<TaskStatus> {
    await this.#poll(signal);
    return this.#status ?? 'working';
  }

  /**
   * Follows the task to its end, and answers its input requests. Callers share one result.
   *
   * @param signal ends the waiting of the first caller; the task itself continues
   * @throws {ErrorResponse} if the task failed with a protocol error; {@link ClientError} if it was cancelled
   */
  result(signal?: AbortSignal): Promise<CallToolResult> {
    this.#result ??= this.#requests
      .busy(() => this.#follow(signal))
      .catch((error: unknown) => {
        this.#result = undefined;
        throw error;
      });
    return this.#result;
  }

  /** Cancels the task. The server may end it some time later (ext-tasks, "Task Cancellation"). */
  async cancel(): Promise<void> {
    await this.#requests.request('tasks/cancel', { taskId: this.id }, undefined);
  }

  async #follow(signal: AbortSignal | undefined): Promise<CallToolResult> {
    let failures = 0;
    for (;;) {
      let detail: Readonly<Record<string, unknown>>;
      try {
        detail = await this.#poll(signal);
        failures = 0;
      } catch (error) {
        const lost = error instanceof ClientError && !(error instanceof ErrorResponse) && error.reason !== 'cancelled';
        failures += 1;
        if (!lost || failures > MAX_FAILED_POLLS || signal?.aborted) throw error;
        await this.#pause(signal);
        continue;
      }
      const legacy = this.#requests.era() === 'legacy';
      switch (this.#status) {
        case 'completed':
        case 'failed':
          return legacy ? this.#fetchResult(signal) : this.#outcome(detail);
        case 'cancelled':
          throw this.#error('cancelled', `the task ${this.id} was cancelled`, 'unknown');
        case 'input_required':
          // A legacy server asks on the stream of `tasks/result` (2025-11-25 tasks, "Input Required Status").
          if (legacy) return this.#fetchResult(signal);
          await this.#answer(detail.inputRequests, signal);
          break;
        default:
          break;
      }
      await this.#pause(signal);
    }
  }

  async #poll(signal: AbortSignal | undefined): Promise<Readonly<Record<string, unknown>>> {
    const task = await this.#requests.request('tasks/get', { taskId: this.id }, signal);
    if (!isObject(task)) throw this.#error('malformed', 'tasks/get: expected a task', 'yes');
    this.#read(task);
    return task;
  }

  #read({ status, statusMessage, pollIntervalMs, pollInterval }: Readonly<Record<string, unknown>>): void {
    if (isStatus(status)) this.#status = status;
    this.#message = typeof statusMessage === 'string' ? statusMessage : undefined;
    const poll = pollIntervalMs ?? pollInterval;
    if (typeof poll === 'number' && poll > 0)
      this.#pollMs = Math.min(LONGEST_POLL_MS, Math.max(SHORTEST_POLL_MS, poll));
  }

  async #answer(inputRequests: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (!isObject(inputRequests)) return;
    const open = Object.entries(inputRequests).filter(([key]) => !this.#answered.has(key));
    if (open.length === 0) return;
    const inputResponses = await this.#requests.answerAll(Object.fromEntries(open), signal);
    await this.#requests.request('tasks/update', { taskId: this.id, inputResponses }, signal);
    for (const [key] of open) this.#answered.add(key);
    // A server names as many requests as it likes.
    for (const key of this.#answered) {
      if (this.#answered.size <= MAX_REMEMBERED) break;
      this.#answered.delete(key);
    }
  }

  #outcome({ result, error }: Readonly<Record<string, unknown>>): CallToolResult {
    if (isToolResult(result)) return result;
    if (isObject(error)) {
      const { code, message, data } = error;
      throw new ErrorResponse(
        this.#requests.server,
        typeof code === 'number' ? code : 0,
        typeof message === 'string' ? message : `the task ${this.id} failed`,
        isJsonObject(data) ? data : undefined,
      );
    }
    throw this.#error('malformed', `the task ${this.id} ended without a result`, 'yes');
  }

  async #fetchResult(signal: AbortSignal | undefined): Promise<CallToolResult> {
    const result = await this.#requests.request('tasks/result', { taskId: this.id }, signal);
    if (isToolResult(result)) return result;
    throw this.#error('malformed', 'tasks/result: expected a result with content', 'yes');
  }

  async #pause(signal: AbortSignal | undefined): Promise<void> {
    await pause(this.#requests.clock, this.#pollMs, signal);
    if (signal?.aborted)
      throw this.#error('cancelled', `waiting for the task ${this.id} was cancelled; the task continues`, 'unknown');
  }

  #error(reason: 'cancelled' | 'malformed', message: string, carriedOut: 'yes' | 'unknown'): ClientError {
    return new ClientError(this.#requests.server, { reason, message, carriedOut });
  }
}

function isStatus(value: unknown): value is TaskStatus {
  return STATUSES.has(value);
}

/** The task in the result of a call, in either form; undefined for a result that is no task. */
export function createdTask(
  result: unknown,
): { readonly id: string; readonly task: Readonly<Record<string, unknown>> } | undefined {
  if (!isObject(result)) return undefined;
  // 2025-11-25: `{ task: { taskId } }`. Extension: the task itself, with `resultType: "task"`.
  const task =
    result.resultType === 'task' ? result : isObject(result.task) && !('content' in result) ? result.task : undefined;
  const id = isObject(task) ? task.taskId : undefined;
  return isObject(task) && typeof id === 'string' ? { id, task } : undefined;
}
