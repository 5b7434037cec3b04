/** The requests that wait for the end of a task, which no deadline but the task's own cuts short (2025-11-25 tasks, "Result Retrieval"). */

import type { ActiveRequest } from '../messages/active-request.ts';
import { EMPTY } from '../messages/results.ts';
import { respond } from '../requests/respond.ts';
import type { TaskInputs } from './task-inputs.ts';

export class TaskWaiters {
  readonly #questions: TaskInputs;
  readonly #ttlMs: number;
  readonly #waiting = new Set<ActiveRequest>();

  constructor(questions: TaskInputs, ttlMs: number) {
    this.#questions = questions;
    this.#ttlMs = ttlMs;
  }

  /** @param left its client no longer waits */
  add(request: ActiveRequest, left: () => void): void {
    this.#waiting.add(request);
    request.signal.addEventListener('abort', left, { once: true });
    request.requests.send({ type: 'allow', request, timeoutMs: this.#ttlMs + 1_000 });
    this.put();
  }

  /** Puts what the task asks to the session of the one that has waited longest. */
  put(): void {
    const [first] = this.#waiting;
    this.#questions.put(first);
  }

  left(request: ActiveRequest): void {
    if (!this.#waiting.delete(request)) return;
    // Nobody hears it: it says that nothing runs for this request any more.
    respond(request, EMPTY);
    this.#questions.left(request);
    this.put();
  }

  /** Those that have waited until now. */
  take(): readonly ActiveRequest[] {
    const waited = [...this.#waiting];
    this.#waiting.clear();
    return waited;
  }
}
