/** How long a shim tries to reach a server, and how often: it waits longer after each failure, and gives up in the end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../protocol/json.ts';

/** Milliseconds before the second attempt; each later one waits twice as long, up to the longest. */
const FIRST_MS = 25;
const LONGEST_MS = 2_000;

/** A connection that lived so long, in milliseconds, was a good one: what failed before it counts no more. */
const GOOD_MS = 5_000;

/** Trying again would not help. */
export class Unreachable extends Error {
  override readonly name = 'Hopeless';
}

/** Somebody else is starting the server: look again soon. */
export class ServerStarting extends Error {
  override readonly name = 'BeingStarted';
}

export class RetryPolicy {
  readonly #waitMs: number;
  readonly #say: (line: string) => void;
  #failures = 0;
  #since: number | undefined;

  /**
   * @param waitMs milliseconds from the first failure in a row until it gives up
   * @param say tells people of the first failure in a row
   */
  constructor(waitMs: number, say: (line: string) => void) {
    this.#waitMs = waitMs;
    this.#say = say;
  }

  /** An attempt to connect failed: resolves when it is time for the next. @throws {Error} when there shall be none */
  async failed(error: unknown): Promise<void> {
    if (error instanceof Unreachable) throw error;
    const why = messageOf(error);
    const now = performance.now();
    this.#since ??= now;
    if (now - this.#since >= this.#waitMs) throw new Error(`gave up after ${this.#waitMs} ms: ${why}`);
    if (error instanceof ServerStarting) return this.#pause(FIRST_MS);
    this.#failures += 1;
    if (this.#failures === 1) this.#say(`${why}: trying again for ${this.#waitMs} ms`);
    await this.#pause(Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.#failures - 1)));
  }

  /** A connection was lost after so many milliseconds: the same as {@link failed}, but a good one is no failure. */
  async lost(livedMs: number, refusal: string): Promise<void> {
    const why = refusal || 'the server has gone';
    if (livedMs >= GOOD_MS) {
      this.#failures = 0;
      this.#since = undefined;
      this.#say(why);
    } else await this.failed(new Error(why));
  }

  /** Calls back when a server has taken too long to take up a session, unless the returned function is called first. */
  deadline(late: () => void): () => void {
    const timer = setTimeout(late, this.#waitMs);
    return () => clearTimeout(timer);
  }

  /** Not all at once: many shims lose their server at the same moment. Never beyond the end of patience. */
  async #pause(ms: number): Promise<void> {
    await sleep(Math.min(this.#waitMs, ms * (0.75 + Math.random() / 2)));
  }
}
