/** The restart policy of `troupe run`: at most three restarts within a minute, each after twice the delay of the one before. */

import { delayAfter } from '../../core/kernel/back-off.ts';
import type { Clock } from '../../core/kernel/clock.ts';

/** The maximum number of restarts, and the window in milliseconds. */
const MAX_RESTARTS = 3;
const WINDOW_MS = 60_000;

const BACK_OFF = { fromMs: 100, toMs: WINDOW_MS };

/** The server crashed too often. */
export class GaveUp extends Error {
  override readonly name = 'GaveUp';
}

export interface RestartsOptions {
  readonly clock: Clock;
  /** Prints a line on stderr. */
  say(line: string): void;
}

export class Restarts {
  readonly #options: RestartsOptions;
  #crashes: number[] = [];

  constructor(options: RestartsOptions) {
    this.#options = options;
  }

  /** Records a crash and resolves when the server may restart. @param why the cause of the crash @throws {GaveUp} after too many crashes */
  async crashed(why: string): Promise<void> {
    const { clock, say } = this.#options;
    const now = clock.now();
    this.#crashes = [...this.#crashes.filter((at) => now - at < WINDOW_MS), now];
    const count = this.#crashes.length;
    if (count > MAX_RESTARTS)
      throw new GaveUp(
        `the server crashed ${count} times within ${WINDOW_MS / 1000} seconds and will not be restarted. Last crash: ${why}`,
      );
    say(`${why}: restarting (${count} of ${MAX_RESTARTS} times within ${WINDOW_MS / 1000} seconds)`);
    // The hold keeps the process alive: the agent may have closed stdin and still wait for responses.
    const hold = clock.hold();
    await new Promise<void>((resolve) => void clock.after(delayAfter(BACK_OFF, count), resolve));
    hold.cancel();
  }
}
