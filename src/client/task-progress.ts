/** The progress of tasks: the token of a call stays valid until the task that it created ends (2025-11-25 tasks, "Task Progress"). */
import { isObject } from '../core/protocol/json.ts';
import type { RequestId } from '../core/protocol/jsonrpc.ts';
import { createdTask } from './client-task.ts';
import type { OutgoingRequest } from './outgoing-requests.ts';

type Listener = NonNullable<OutgoingRequest['onProgress']>;

/** Maximum number of tasks whose progress is followed. The oldest is forgotten first. */
const MAX_TASKS = 1_024;
const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled']);

export class TaskProgress {
  /** The listeners by the token of the call. */
  readonly #byToken = new Map<RequestId, { readonly taskId: string; readonly listener: Listener }>();

  /** A response has arrived: it may create a task, or show that one has ended. */
  responded({ id, method, params, onProgress }: OutgoingRequest, result: unknown): void {
    const created = createdTask(result);
    if (created && onProgress) {
      this.#byToken.set(id, { taskId: created.id, listener: onProgress });
      if (this.#byToken.size > MAX_TASKS) this.#byToken.delete([...this.#byToken.keys()][0] ?? '');
    }
    if (this.#byToken.size === 0 || typeof params?.taskId !== 'string') return;
    const ended = method === 'tasks/result' || (isObject(result) && ENDED.has(result.status));
    if (ended) this.forget(params.taskId);
  }

  forget(taskId: string): void {
    for (const [token, each] of this.#byToken) if (each.taskId === taskId) this.#byToken.delete(token);
  }

  /** The listener for the progress of a task, by the token of the call that created it. */
  listener(token: RequestId): Listener | undefined {
    return this.#byToken.get(token)?.listener;
  }
}
