/** Finds out whether a client takes nothing of what was written to it. */

export class StallDetector {
  #pending = 0;
  #since = 0;

  /** Looks at the bytes that wait. @returns whether none was taken for `stallMs` milliseconds */
  stalled(pending: number, now: number, stallMs: number): boolean {
    if (pending === 0 || pending < this.#pending || this.#pending === 0) this.#since = now;
    this.#pending = pending;
    return pending > 0 && now - this.#since >= stallMs;
  }

  /** The client has taken everything for a moment. */
  moved(): void {
    this.#pending = 0;
  }
}
