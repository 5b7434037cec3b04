/** Detects a client that does not read the written bytes. */

export class StallDetector {
  #pending = 0;
  #since = 0;

  /** Checks the number of pending bytes. @returns whether the client read none for `stallMs` milliseconds */
  stalled(pending: number, now: number, stallMs: number): boolean {
    if (pending === 0 || pending < this.#pending || this.#pending === 0) this.#since = now;
    this.#pending = pending;
    return pending > 0 && now - this.#since >= stallMs;
  }

  /** The client has read everything at one moment. */
  moved(): void {
    this.#pending = 0;
  }
}
