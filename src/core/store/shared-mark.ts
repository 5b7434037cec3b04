/**
 * The event that the process is working on, in memory of several threads: if the process ends itself during the event, a
 * thread stores the mark before the process is gone. Without a mark it costs nothing.
 */

/** The integers before the text: the state, and the length of the text in bytes. */
const STATE = 0;
const LENGTH = 1;
const HEAD_BYTES = 8;
/** Longer marks are cut. */
const TEXT_BYTES = 16_384;
/** The values of the state. */
const WAITING = 0;
const PUBLISHING = 1;
const PUBLISHED = 2;

export class SharedMark {
  readonly shared: SharedArrayBuffer;
  readonly #head: Int32Array;
  readonly #text: Uint8Array;
  readonly #encoder = new TextEncoder();

  constructor(shared = new SharedArrayBuffer(HEAD_BYTES + TEXT_BYTES)) {
    this.shared = shared;
    this.#head = new Int32Array(shared, 0, 2);
    this.#text = new Uint8Array(shared, HEAD_BYTES);
  }

  /** Replaces the mark. */
  write(what: string): void {
    Atomics.store(this.#head, LENGTH, this.#encoder.encodeInto(what, this.#text).written);
  }

  clear(): void {
    Atomics.store(this.#head, LENGTH, 0);
  }

  /** Call in the thread that ends the process. Blocks until the mark is stored, for `withinMs` milliseconds at most. */
  publish(withinMs: number): void {
    if (Atomics.load(this.#head, LENGTH) === 0) return;
    if (Atomics.compareExchange(this.#head, STATE, WAITING, PUBLISHING) !== WAITING) return;
    Atomics.notify(this.#head, STATE);
    Atomics.wait(this.#head, STATE, PUBLISHING, withinMs);
  }

  /** Call in the thread that stores the mark. Blocks until there is one to store. @returns it */
  toPublish(): string {
    Atomics.wait(this.#head, STATE, WAITING);
    // A decoder takes no memory that another thread may change.
    return Buffer.from(this.#text.slice(0, Atomics.load(this.#head, LENGTH))).toString();
  }

  /** The mark is stored, or cannot be. */
  published(): void {
    Atomics.store(this.#head, STATE, PUBLISHED);
    Atomics.notify(this.#head, STATE);
  }
}
