/** What waits for an instance: events, looks and its end, each with whoever waits for the answer. */
import type { HandleEvent, HandleView } from '../messages/handles.ts';
import { HandleError } from './error.ts';
import type { Caller } from './kind.ts';

export type JobKind =
  | { readonly type: 'event'; readonly event: HandleEvent; readonly key: string | undefined }
  /** `told` is what an earlier call of the same key came to: it is told again, unless more has come of this one. */
  | { readonly type: 'look'; readonly told?: HandleView | undefined }
  | { readonly type: 'end' };

export type Job = JobKind & {
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
export function jobOf(
  kind: JobKind,
  caller: Caller,
  cause = 0,
): { readonly job: Job; readonly answer: Promise<HandleView> } {
  let resolve: Job['resolve'] = () => {};
  let reject: Job['reject'] = () => {};
  const answer = new Promise<HandleView>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { job: { ...kind, caller, cause, attempts: 0, asked: 0, resolve, reject }, answer };
}

/** A bounded queue of what waits. */
export class Mailroom {
  #jobs: Job[] = [];
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#jobs.length;
  }

  /** @throws {HandleError} `busy`, at once: nothing that was taken is dropped */
  add(kind: JobKind, caller: Caller, cause: number): Promise<HandleView> {
    if (this.#jobs.length >= this.#most)
      return Promise.reject(
        new HandleError(
          'busy',
          `${this.#most} calls wait for this instance, which is its limit: try again in a moment (the server's option is limits.handleMailbox)`,
        ),
      );
    const { job, answer } = jobOf(kind, caller, cause);
    this.#jobs.push(job);
    return answer;
  }

  first(): Job | undefined {
    return this.#jobs[0];
  }

  take(): void {
    this.#jobs.shift();
  }

  /** Back to the front, in this order. */
  putBack(jobs: readonly Job[]): void {
    this.#jobs = [...jobs, ...this.#jobs];
  }

  refuse(error: unknown): void {
    const jobs = this.#jobs;
    this.#jobs = [];
    for (const { reject } of jobs) reject(error);
  }
}
