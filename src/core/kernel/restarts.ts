/** The crashes of one part: an actor, a thread, a process. Decides whether the part starts again, and when. */
import { type SupervisorEvent, supervisorMachine } from '../../../machines/supervisor.ts';
import { delayAfter } from './back-off.ts';
import type { Clock, Timer } from './clock.ts';
import { step } from './step.ts';

export interface RestartPolicy {
  /** Tolerated crashes within the window; one more quarantines the part. At least 0. */
  readonly restarts: number;
  /** Length of the window, in milliseconds. */
  readonly windowMs: number;
  /** Delay in milliseconds after the first crash of a window, doubled with each further crash up to `toMs`. Default: restart immediately. */
  readonly backOff?: { readonly fromMs: number; readonly toMs: number };
}

export class Restarts {
  readonly #policy: RestartPolicy;
  #state = supervisorMachine.initial;
  /** The times of the crashes within the window. */
  #crashes: readonly number[] = [];
  #timer: Timer | undefined;

  constructor(policy: RestartPolicy) {
    this.#policy = policy;
  }

  /** True after more crashes than the policy tolerates, until {@link release}. */
  get quarantined(): boolean {
    return this.#state.path === 'quarantined';
  }

  /** The number of crashes within the window, at the last one. */
  get crashes(): number {
    return this.#crashes.length;
  }

  /**
   * Records a crash of a part that continues at once.
   *
   * @param at the time of a clock, in milliseconds
   * @returns false if the part crashed more often than its policy tolerates
   */
  crashed(at: number): boolean {
    return this.#record(at, 'crash');
  }

  /**
   * Records a crash of a part that must be started again, and starts it after the delay of its policy.
   *
   * @returns the delay in milliseconds; undefined if the part crashed more often than its policy tolerates
   * @example restarts.restart(clock, () => this.#start())
   */
  restart(clock: Clock, start: () => void): number | undefined {
    if (!this.#record(clock.now(), 'delay')) return undefined;
    const { backOff = { fromMs: 0, toMs: 0 } } = this.#policy;
    const delayMs = delayAfter(backOff, this.#crashes.length);
    this.stop();
    this.#timer = clock.after(delayMs, () => {
      this.#take('waited');
      start();
    });
    return delayMs;
  }

  /** Forgets the crashes, and a restart that waits. */
  release(): void {
    this.stop();
    this.#take('release');
    this.#crashes = [];
  }

  /** Nothing starts the part any more. */
  stop(): void {
    this.#timer?.cancel();
  }

  #record(at: number, tolerated: 'crash' | 'delay'): boolean {
    if (this.quarantined) return false;
    const { restarts, windowMs } = this.#policy;
    const recent = this.#crashes.filter((time) => at - time < windowMs);
    this.#crashes = [...recent, at];
    this.#take(recent.length < restarts ? tolerated : 'exceed');
    return !this.quarantined;
  }

  #take(type: SupervisorEvent['type']): void {
    this.#state = step(this.#state, { type }) ?? this.#state;
  }
}
