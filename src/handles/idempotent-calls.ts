/** Calls with an idempotency key: one is made, and its repetitions are told what it came to. */
import type { HandleView } from '../messages/handle-messages.ts';
import { isObject } from '../protocol/json.ts';
import { fromText } from '../store/serialize.ts';
import type { Store, Write } from '../store/store.ts';
import { storageError } from './load-instance.ts';

export class IdempotentCalls {
  readonly #store: Store;
  /** Calls on their way, by what they are keyed with. */
  readonly #calls = new Map<string, Promise<HandleView>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Makes a call, unless one with this key was made before.
   *
   * @param scope within which the key is known
   * @param again answers a repetition, from what was kept of the first
   * @param make makes the call; what it is given makes the row that remembers it
   * @throws {HandleError}
   */
  async once(
    scope: string,
    key: string,
    again: (told: string) => Promise<HandleView>,
    make: (reply: readonly ((data: string, expires: number) => Write)[]) => Promise<HandleView>,
  ): Promise<HandleView> {
    const name = `${scope} ${key}`;
    // A repetition while the first is on its way waits for it.
    const running = this.#calls.get(name);
    if (running) return running;
    const call = this.#made(scope, key, again, make);
    this.#calls.set(name, call);
    try {
      return await call;
    } finally {
      this.#calls.delete(name);
    }
  }

  async #made(
    scope: string,
    key: string,
    again: (told: string) => Promise<HandleView>,
    make: (reply: readonly ((data: string, expires: number) => Write)[]) => Promise<HandleView>,
  ): Promise<HandleView> {
    const before = await this.#before(scope, key);
    if (before !== undefined) return again(before);
    return make([(data, expires) => ({ type: 'reply', actor: scope, request: key, data, expires })]);
  }

  async #before(scope: string, key: string): Promise<string | undefined> {
    try {
      // One that gave way to newer ones is empty.
      return (await this.#store.reply(scope, key)) || undefined;
    } catch (error) {
      throw storageError(error, 'none');
    }
  }

  /** What was kept of a view. */
  viewOf(text: string): HandleView | undefined {
    const view: unknown = fromText(text, 'the answer of an earlier call');
    return isView(view) ? view : undefined;
  }
}

function isView(value: unknown): value is HandleView {
  return isObject(value) && typeof value.handle === 'string' && Array.isArray(value.accepts);
}
