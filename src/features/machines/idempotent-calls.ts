/** Runs each call with an idempotency key once, and answers repeated calls from the stored reply. */

import { isObject } from '../../core/protocol/json.ts';
import { fromText } from '../../core/store/serialize.ts';
import type { Store, Write } from '../../core/store/store.ts';
import type { HandleView } from './handle-messages.ts';
import { storageError } from './load-instance.ts';

export class IdempotentCalls {
  readonly #store: Store;
  /** Calls in progress, by scope and key. */
  readonly #calls = new Map<string, Promise<HandleView>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Runs a call unless one with this key has already run.
   *
   * @param scope the scope within which the key is unique
   * @param repeat answers a repeated call from the stored reply of the first
   * @param run runs the call; its argument creates the row that stores the reply
   * @throws {HandleError}
   */
  async once(
    scope: string,
    key: string,
    repeat: (earlier: string) => Promise<HandleView>,
    run: (reply: readonly ((data: string, expires: number) => Write)[]) => Promise<HandleView>,
  ): Promise<HandleView> {
    const name = `${scope} ${key}`;
    // A repeated call waits for the first one if that is still in progress.
    const running = this.#calls.get(name);
    if (running) return running;
    const call = this.#runOnce(scope, key, repeat, run);
    this.#calls.set(name, call);
    try {
      return await call;
    } finally {
      this.#calls.delete(name);
    }
  }

  async #runOnce(
    scope: string,
    key: string,
    repeat: (earlier: string) => Promise<HandleView>,
    run: (reply: readonly ((data: string, expires: number) => Write)[]) => Promise<HandleView>,
  ): Promise<HandleView> {
    const before = await this.#storedReply(scope, key);
    if (before !== undefined) return repeat(before);
    return run([(data, expires) => ({ type: 'reply', actor: scope, request: key, data, expires })]);
  }

  async #storedReply(scope: string, key: string): Promise<string | undefined> {
    try {
      // An evicted reply is an empty text.
      return (await this.#store.reply(scope, key)) || undefined;
    } catch (error) {
      throw storageError(error, 'none');
    }
  }

  /** Parses a stored view. */
  viewOf(text: string): HandleView | undefined {
    const view: unknown = fromText(text, 'the stored answer of an earlier call');
    return isView(view) ? view : undefined;
  }
}

export function isView(value: unknown): value is HandleView {
  return isObject(value) && typeof value.handle === 'string' && Array.isArray(value.accepts);
}
