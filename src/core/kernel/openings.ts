/** The work that a transport waits for before it opens. The program that began it may await it, too. */

/**
 * A promise that records whether the program awaits it: an error that the program handles must not end its server, and one that
 * it does not handle must not stay unnoticed.
 */
class AwaitedPromise<T> extends Promise<T> {
  awaited = false;

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: a promise has this member; overriding it is the only way to see `await`.
  override then<A = T, B = never>(
    fulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.awaited = true;
    return super.then(fulfilled, rejected);
  }

  /** Makes its rejection no unhandled one. */
  ignore(): void {
    super.then(undefined, () => {});
  }
}

export class Openings {
  readonly #opening = new Set<{ readonly done: Promise<unknown>; readonly promise: AwaitedPromise<unknown> }>();

  /** Lets a transport wait for this. @returns the promise for the program */
  add<T>(done: Promise<T>): Promise<T> {
    const promise = new AwaitedPromise<T>((resolve, reject) => void done.then(resolve, reject));
    promise.ignore();
    const opening = { done, promise };
    this.#opening.add(opening);
    // Work that ended well is nothing to wait for: a server that is open begins more of it, and opens no further transport.
    done.then(
      () => this.#opening.delete(opening),
      () => {},
    );
    return promise;
  }

  /** Waits for all of it. @throws an error that the program did not await */
  async ready(): Promise<void> {
    for (const opening of this.#opening) {
      try {
        await opening.done;
      } catch (error) {
        if (!opening.promise.awaited) throw error;
      }
      this.#opening.delete(opening);
    }
  }
}
