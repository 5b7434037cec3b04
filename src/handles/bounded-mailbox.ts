/** What waits for an instance: events, looks and its end, each with whoever waits for the answer. */
import type { HandleEvent, HandleView } from '../messages/handle-messages.ts';
import { HandleError } from './handle-error.ts';
import type { Caller } from './machine-definition.ts';

export type QueuedKind =
  | { readonly type: 'event'; readonly event: HandleEvent; readonly key: string | undefined }
  /** `told` is what an earlier call of the same key came to: it is told again, unless more has come of this one. */
  | { readonly type: 'look'; readonly told?: HandleView | undefined }
  | { readonly type: 'end' };

export type QueuedCall = QueuedKind & {
  readonly caller: Caller;
  /** The inspection record that told of it; 0 where nobody watched. */
  readonly cause: number;
  /** How often it has crashed the instance. */
  attempts: number;
  /** How many questions the instance had asked before it. */
  asked: number;
  resolve(view: HandleView): void;
  reject(error: unknown): void;
};

/** A job, and the promise of what it comes to. */
export function queuedCall(
  kind: QueuedKind,
  caller: Caller,
  cause = 0,
): { readonly job: QueuedCall; readonly answer: Promise<HandleView> } {
  let resolve: QueuedCall['resolve'] = () => {};
  let reject: QueuedCall['reject'] = () => {};
  const answer = new Promise<HandleView>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { job: { ...kind, caller, cause, attempts: 0, asked: 0, resolve, reject }, answer };
}

/** A bounded queue of what waits. */
export class BoundedMailbox {
  #jobs: QueuedCall[] = [];
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#jobs.length;
  }

  /** @throws {HandleError} `busy`, at once: nothing that was taken is dropped */
  add(kind: QueuedKind, caller: Caller, cause: number): Promise<HandleView> {
    if (this.#jobs.length >= this.#most)
      return Promise.reject(
        new HandleError(
          'busy',
          `${this.#most} calls wait for this instance, which is its limit: try again in a moment (the server's option is limits.handleMailbox)`,
        ),
      );
    const { job, answer } = queuedCall(kind, caller, cause);
    this.#jobs.push(job);
    return answer;
  }

  first(): QueuedCall | undefined {
    return this.#jobs[0];
  }

  take(): void {
    this.#jobs.shift();
  }

  /** Back to the front, in this order. */
  putBack(jobs: readonly QueuedCall[]): void {
    this.#jobs = [...jobs, ...this.#jobs];
  }

  refuse(error: unknown): void {
    const jobs = this.#jobs;
    this.#jobs = [];
    for (const { reject } of jobs) reject(error);
  }
}
