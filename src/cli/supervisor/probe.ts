/** Probes a server that owes the agent a response and says nothing: asks it for one that every server gives at once. It knows no pipe. */
import type { Clock, Timer } from '../../clock.ts';
import { LOOK_MS } from './heartbeat.ts';

/** How long a server may say nothing before it is asked, and how long it may then take to respond, in milliseconds. */
const SILENT_MS = 10_000;

export interface ProbeOptions {
  readonly clock: Clock;
  /** Whether the agent waits for a response, and would read it. */
  awaits(): boolean;
  /** Whether the event loop of the server's process turns: a server that computes cannot respond. */
  turns(): boolean;
  /** Sends the server a request of the supervisor's own. */
  ask(): void;
  /** The server does not respond. Said once. @param why such as `does not respond` */
  dead(why: string): void;
}

/** Time counts in looks, as that of a {@link Heartbeat} does. */
export class Probe {
  readonly #options: ProbeOptions;
  #timer: Timer;
  #looked: number;
  #silentMs = 0;
  #asked = false;

  constructor(options: ProbeOptions) {
    this.#options = options;
    this.#looked = options.clock.now();
    this.#timer = options.clock.after(LOOK_MS, this.#look);
  }

  /** The server has said something: it need not be asked. */
  heard(): void {
    if (!this.#asked) this.#silentMs = 0;
  }

  /** The server has responded to a request. Once it is asked only that counts: also one that reads nothing may say something. */
  responded(): void {
    this.#silentMs = 0;
    this.#asked = false;
  }

  stop(): void {
    this.#timer.cancel();
  }

  readonly #look = (): void => {
    const { clock, awaits, turns, ask, dead } = this.#options;
    const now = clock.now();
    const passed = Math.min(now - this.#looked, 2 * LOOK_MS);
    this.#looked = now;
    if (!awaits()) this.responded();
    else if (turns()) this.#silentMs += passed;
    if (this.#silentMs >= SILENT_MS) {
      this.#silentMs = 0;
      if (this.#asked) return dead('does not respond, though its event loop turns');
      this.#asked = true;
      ask();
    }
    this.#timer = clock.after(LOOK_MS, this.#look);
  };
}
