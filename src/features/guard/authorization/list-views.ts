/** The views of one list: which of its elements each caller sees. Callers that see the same share one view. */
import { createHmac, randomBytes } from 'node:crypto';
import type { ListView } from '../../../core/messages/authorization-rule.ts';

/** Maximum number of views of one list. Beyond it, the view that was unused longest is dropped with its pages. */
export const MAX_VIEWS = 64;

/** Length of a view's id in characters: 72 bits. */
const ID_LENGTH = 12;

export class ListViews {
  /** By the hidden keys, in the order of their last use. */
  readonly #views = new Map<string, ListView>();
  /** The id of a view appears in cursors: without the key, a client could test guesses of hidden names. */
  readonly #key = randomBytes(32);

  get size(): number {
    return this.#views.size;
  }

  /** The view that hides these keys, in the order of the list. */
  of(hidden: readonly string[]): ListView {
    const text = hidden.length === 0 ? '' : hidden.join('\n');
    const found = this.again(text);
    if (found) return found;
    const view: ListView = {
      id: createHmac('sha256', this.#key).update(text).digest('base64url').slice(0, ID_LENGTH),
      text,
      hides: new Set(hidden),
    };
    this.#views.set(text, view);
    if (this.#views.size > MAX_VIEWS) for (const [oldest] of this.#views) return this.#drop(oldest, view);
    return view;
  }

  /** A view by its text; undefined if it was dropped. */
  again(text: string): ListView | undefined {
    const found = this.#views.get(text);
    if (found && this.#views.size > 1) {
      this.#views.delete(text);
      this.#views.set(text, found);
    }
    return found;
  }

  #drop(oldest: string, view: ListView): ListView {
    this.#views.delete(oldest);
    return view;
  }
}
