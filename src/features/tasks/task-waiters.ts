/** The requests that wait for the end of a task. Only the task's own deadline ends them (2025-11-25 tasks, "Result Retrieval"). */

import type { RequestView } from '../../core/messages/request-view.ts';
import { EMPTY } from '../../core/messages/results.ts';
import { respond } from '../../core/requests/active-request.ts';
import type { TaskInputs } from './task-inputs.ts';

export class TaskWaiters {
  readonly #questions: TaskInputs;
  readonly #ttlMs: number;
  readonly #waiting = new Set<RequestView>();

  constructor(questions: TaskInputs, ttlMs: number) {
    this.#questions = questions;
    this.#ttlMs = ttlMs;
  }

  /** @param aborted called when the client stops waiting */
  add(request: RequestView, aborted: () => void): void {
    this.#waiting.add(request);
    request.signal.addEventListener('abort', aborted, { once: true });
    request.requests.send({ type: 'extend deadline', request, timeoutMs: this.#ttlMs + 1_000 });
    this.sendToSession();
  }

  /** Sends the task's questions to the session that has waited longest. */
  sendToSession(): void {
    const [first] = this.#waiting;
    this.#questions.sendToSession(first);
  }

  aborted(request: RequestView): void {
    if (!this.#waiting.delete(request)) return;
    // No client receives this response; it frees the request.
    respond(request, EMPTY);
    this.#questions.aborted(request);
    this.sendToSession();
  }

  /** Removes and returns all waiting requests. */
  take(): readonly RequestView[] {
    const waited = [...this.#waiting];
    this.#waiting.clear();
    return waited;
  }
}
