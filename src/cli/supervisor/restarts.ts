/** How often a server that crashes is started again, and how soon: three times within a minute, each later than the one before. */
import type { Clock } from '../../clock.ts';

/** So many restarts are borne within so many milliseconds (RELIABILITY 3.2, "root"). */
const MOST = 3;
const WITHIN_MS = 60_000;

/** Milliseconds before the first restart; each later one waits twice as long. */
const FIRST_MS = 100;

/** A server that crashes so often will crash again. */
export class GaveUp extends Error {
  override readonly name = 'GaveUp';
}

export interface RestartsOptions {
  readonly clock: Clock;
  /** Tells people. */
  say(line: string): void;
}

export class Restarts {
  readonly #options: RestartsOptions;
  #crashes: number[] = [];

  constructor(options: RestartsOptions) {
    this.#options = options;
  }

  /** Resolves when it is time to start it again. @param why what it died of @throws {GaveUp} when it shall not be */
  async crashed(why: string): Promise<void> {
    const { clock, say } = this.#options;
    const now = clock.now();
    this.#crashes = [...this.#crashes.filter((at) => now - at < WITHIN_MS), now];
    const count = this.#crashes.length;
    if (count > MOST)
      throw new GaveUp(
        `the server crashed ${count} times within ${WITHIN_MS / 1000} seconds, last because ${why}: it is not started again`,
      );
    say(`${why}: it is started again (${count} of ${MOST} times within ${WITHIN_MS / 1000} seconds)`);
    // Nothing else may be left that keeps this process: the agent has closed stdin, and waits for its answers.
    const hold = clock.hold();
    await new Promise<void>((resolve) => void clock.after(FIRST_MS * 2 ** (count - 1), resolve));
    hold.cancel();
  }
}
