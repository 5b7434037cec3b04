/** The heartbeat of a worker process: detects a stopped process, and an event loop that is blocked beyond the watchdog's hard limit. It does no I/O. */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { ProcessState } from './process-state.ts';

/** The interval between checks, in milliseconds. */
export const HEARTBEAT_MS = 2_000;

/** Time limit in milliseconds for a stopped process (SIGSTOP): an operator may stop it for a moment to inspect it. */
const STOPPED_MS = 10_000;

/** The allowance beyond twice the watchdog's hard limit, in milliseconds. The watchdog itself waits twice that limit for native code. */
const SLACK_MS = 10_000;

interface HeartbeatOptions {
  readonly clock: Clock;
  /** Sends a beat to the process. The caller passes the answer to {@link Heartbeat.answered}. */
  ask(): void;
  /** Reads the state of the process from the system. Called only if the process does not answer. */
  state(): ProcessState;
  /** The process must be replaced. Called once. @param why such as `is stopped (SIGSTOP)` @param blocked true if its event loop is blocked */
  dead(why: string, blocked: boolean): void;
}

type BeatState =
  /** The process does not answer yet. */
  | 'loading'
  /** A beat is unanswered. */
  | 'asked'
  | 'answered';

/**
 * A check counts for at most two intervals, however late it runs. So a suspended laptop, or a machine too busy to run this
 * process, does not count against the worker.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #timer: Timer;
  #checkedAt: number;
  /** The time without an answer, in milliseconds. */
  #silentMs = 0;
  #state: BeatState = 'loading';
  #debugged = false;
  #longestMs = Number.POSITIVE_INFINITY;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#checkedAt = options.clock.now();
    this.#timer = options.clock.after(HEARTBEAT_MS, this.#check);
  }

  /** The process serves and answers beats from now on. @param hardMs the hard limit of its watchdog; undefined for none */
  begin(hardMs: number | undefined): void {
    if (hardMs !== undefined) this.#longestMs = 2 * hardMs + SLACK_MS;
    this.#ask();
  }

  /** The process has answered. @param debugged true if a debugger is attached, which may pause the process */
  answered(debugged: boolean): void {
    if (this.#state === 'asked') this.#state = 'answered';
    this.#silentMs = 0;
    this.#debugged = debugged;
  }

  /** True if the process serves and its event loop ran at the last check. */
  get loopRuns(): boolean {
    return this.#state !== 'loading' && this.#silentMs === 0 && !this.#debugged;
  }

  stop(): void {
    this.#timer.cancel();
  }

  #ask(): void {
    this.#state = 'asked';
    this.#options.ask();
  }

  readonly #check = (): void => {
    const { clock, dead } = this.#options;
    const now = clock.now();
    const passed = Math.min(now - this.#checkedAt, 2 * HEARTBEAT_MS);
    this.#checkedAt = now;
    const verdict = this.#verdict(passed);
    if (verdict) return dead(verdict.why, verdict.blocked);
    this.#timer = clock.after(HEARTBEAT_MS, this.#check);
  };

  #verdict(passed: number): { readonly why: string; readonly blocked: boolean } | undefined {
    if (this.#state === 'answered') {
      this.#ask();
      return undefined;
    }
    if (this.#debugged) return undefined;
    this.#silentMs += passed;
    if (this.#silentMs < STOPPED_MS) return undefined;
    // A process that is still loading does not answer, and may load for long: only its system state counts.
    const state = this.#options.state();
    if (state === 'stopped') return { why: 'is stopped (SIGSTOP)', blocked: false };
    if (state === 'traced') this.#silentMs = 0;
    if (this.#state === 'loading' || this.#silentMs < this.#longestMs) return undefined;
    const seconds = Math.round(this.#silentMs / 1_000);
    return { why: `was blocked for ${seconds} seconds and its watchdog did not end it`, blocked: true };
  }
}
