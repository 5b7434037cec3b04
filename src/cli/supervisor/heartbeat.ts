/** The heartbeat of a worker process: finds a process that is stopped, and an event loop that is blocked beyond the watchdog's hard limit. It knows no process and no pipe. */
import type { Clock, Timer } from '../../clock.ts';
import type { ProcessState } from './process-state.ts';

/** Between two looks, in milliseconds. */
export const LOOK_MS = 2_000;

/** How long a process may be stopped (SIGSTOP), in milliseconds: who stops it for a moment, to look at it, finds it again. */
export const STOPPED_MS = 10_000;

/** What an event loop is given beyond twice the watchdog's hard limit, in milliseconds: the watchdog gives native code twice that limit. */
const SLACK_MS = 10_000;

export interface HeartbeatOptions {
  readonly clock: Clock;
  /** Asks the process for a beat; {@link Heartbeat.answered} is called with its answer. */
  ask(): void;
  /** What the system says of the process. Asked only where the process does not answer. */
  state(): ProcessState;
  /** The process has to be replaced. Said once. @param why such as `is stopped (SIGSTOP)` @param blocked what it does never ends */
  dead(why: string, blocked: boolean): void;
}

/**
 * Time counts in looks: a look counts for at most two intervals, so that a suspended laptop, or a machine that had no time for
 * this process either, blames nobody.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #timer: Timer;
  #looked: number;
  /** Milliseconds for which the process has not answered. */
  #silentMs = 0;
  #serves = false;
  /** It has been asked, and has not answered. */
  #asked = false;
  #debugged = false;
  #longestMs = Number.POSITIVE_INFINITY;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#looked = options.clock.now();
    this.#timer = options.clock.after(LOOK_MS, this.#look);
  }

  /** The process serves, and answers from now on. @param hardMs after which its watchdog ends it; undefined for never */
  begin(hardMs: number | undefined): void {
    this.#serves = true;
    if (hardMs !== undefined) this.#longestMs = 2 * hardMs + SLACK_MS;
    this.#ask();
  }

  /** The process has answered. @param debugged whether a debugger is attached to it: then it may stand still for long */
  answered(debugged: boolean): void {
    this.#asked = false;
    this.#silentMs = 0;
    this.#debugged = debugged;
  }

  /** Whether it serves and its event loop turns, as far as the last look tells. */
  get turns(): boolean {
    return this.#serves && this.#silentMs === 0 && !this.#debugged;
  }

  stop(): void {
    this.#timer.cancel();
  }

  #ask(): void {
    this.#asked = true;
    this.#options.ask();
  }

  readonly #look = (): void => {
    const { clock, dead } = this.#options;
    const now = clock.now();
    const passed = Math.min(now - this.#looked, 2 * LOOK_MS);
    this.#looked = now;
    const verdict = this.#verdict(passed);
    if (verdict) return dead(verdict.why, verdict.blocked);
    this.#timer = clock.after(LOOK_MS, this.#look);
  };

  #verdict(passed: number): { readonly why: string; readonly blocked: boolean } | undefined {
    if (this.#serves && !this.#asked) {
      this.#ask();
      return undefined;
    }
    if (this.#debugged) return undefined;
    this.#silentMs += passed;
    if (this.#silentMs < STOPPED_MS) return undefined;
    // One that still loads does not answer, and may load for long: only its state tells anything.
    const state = this.#options.state();
    if (state === 'stopped') return { why: 'is stopped (SIGSTOP)', blocked: false };
    if (state === 'traced') this.#silentMs = 0;
    if (!this.#serves || this.#silentMs < this.#longestMs) return undefined;
    const seconds = Math.round(this.#silentMs / 1_000);
    return { why: `has been blocked for ${seconds} seconds, and its watchdog has not ended it`, blocked: true };
  }
}
