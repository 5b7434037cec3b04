/** Probes a silent server that owes the agent a response: sends a request that every server answers at once. It does no I/O. */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import { HEARTBEAT_MS } from './heartbeat.ts';

/** The silence before a probe is sent, and the time limit for its response, in milliseconds. */
const SILENT_MS = 10_000;

interface ProbeOptions {
  readonly clock: Clock;
  /** True if the agent waits for a response and reads its input. */
  awaits(): boolean;
  /** True if the event loop of the server's process runs: a blocked server cannot respond. */
  loopRuns(): boolean;
  /** Sends a probe to the server. */
  ask(): void;
  /** The server does not respond. Called once. @param why such as `does not respond` */
  dead(why: string): void;
}

/** Counts time as {@link Heartbeat} does. */
export class Probe {
  readonly #options: ProbeOptions;
  #timer: Timer;
  #checkedAt: number;
  #silentMs = 0;
  #asked = false;

  constructor(options: ProbeOptions) {
    this.#options = options;
    this.#checkedAt = options.clock.now();
    this.#timer = options.clock.after(HEARTBEAT_MS, this.#check);
  }

  /** The server has sent something, so no probe is needed yet. */
  received(): void {
    if (!this.#asked) this.#silentMs = 0;
  }

  /** The server has responded to a request. After a probe only a response counts: a server that reads nothing may still send notifications. */
  responded(): void {
    this.#silentMs = 0;
    this.#asked = false;
  }

  stop(): void {
    this.#timer.cancel();
  }

  readonly #check = (): void => {
    const { clock, awaits, loopRuns, ask, dead } = this.#options;
    const now = clock.now();
    const passed = Math.min(now - this.#checkedAt, 2 * HEARTBEAT_MS);
    this.#checkedAt = now;
    if (!awaits()) this.responded();
    else if (loopRuns()) this.#silentMs += passed;
    if (this.#silentMs >= SILENT_MS) {
      this.#silentMs = 0;
      if (this.#asked) return dead('does not respond although its event loop runs');
      this.#asked = true;
      ask();
    }
    this.#timer = clock.after(HEARTBEAT_MS, this.#check);
  };
}
