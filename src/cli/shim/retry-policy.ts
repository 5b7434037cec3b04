/** The retry policy of `troupe attach`: delays grow after each failed connection, up to a total time limit. */

import { setTimeout as sleep } from 'node:timers/promises';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { messageOf } from '../../core/protocol/json.ts';

const BACK_OFF = { fromMs: 25, toMs: 2_000 };

/** A connection that lasts this long, in milliseconds, resets the policy. */
const STABLE_MS = 5_000;

/** A failure for which a retry does not help. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** Another process is starting the server: retry soon. */
export class ServerStarting extends Error {
  override readonly name = 'ServerStarting';
}

export class RetryPolicy {
  readonly #waitMs: number;
  readonly #say: (line: string) => void;
  #failures = 0;
  #since: number | undefined;

  /**
   * @param waitMs the time from the first consecutive failure until the policy gives up, in milliseconds
   * @param say prints the first of consecutive failures
   */
  constructor(waitMs: number, say: (line: string) => void) {
    this.#waitMs = waitMs;
    this.#say = say;
  }

  /** Records a failed attempt and resolves when the next may start. @throws {Error} after the time limit, or for {@link Unreachable} */
  async failed(error: unknown): Promise<void> {
    if (error instanceof Unreachable) throw error;
    const why = messageOf(error);
    const now = performance.now();
    this.#since ??= now;
    if (now - this.#since >= this.#waitMs) throw new Error(`gave up after ${durationOf(this.#waitMs)}: ${why}`);
    if (error instanceof ServerStarting) return this.#pause(BACK_OFF.fromMs);
    this.#failures += 1;
    if (this.#failures === 1) this.#say(`${why}: retrying for ${durationOf(this.#waitMs)}`);
    await this.#pause(delayAfter(BACK_OFF, this.#failures));
  }

  /** Records a lost connection. A connection that lasted long enough resets the policy; any other counts as a failed attempt. */
  async lost(livedMs: number, refusal: string): Promise<void> {
    const why = refusal || 'the server closed the connection';
    if (livedMs >= STABLE_MS) {
      this.#failures = 0;
      this.#since = undefined;
      this.#say(why);
    } else await this.failed(new Error(why));
  }

  /** Calls back when a server takes too long to resume a session. The returned function cancels the timer. */
  deadline(late: () => void): () => void {
    const timer = setTimeout(late, this.#waitMs);
    return () => clearTimeout(timer);
  }

  /** Waits with random jitter, because many shims lose their server at the same moment. Never waits beyond the time limit. */
  async #pause(ms: number): Promise<void> {
    await sleep(Math.min(this.#waitMs, ms * (0.75 + Math.random() / 2)));
  }
}
