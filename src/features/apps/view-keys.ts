/**
 * The keys of views. A key proves that a call comes from a view that the server opened for this user: hosts pass `_meta`
 * to views and not to models.
 */
import { randomId } from '../../core/kernel/random-id.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import { VIEW_META } from './view-meta.ts';

interface OpenedView {
  /** Names the view. */
  readonly id: string;
}

/** Length of the id of a view: it only distinguishes the views of one resource. */
const ID_LENGTH = 10;

export class ViewKeys {
  readonly #keys: StateKeys;
  readonly #date: () => number;

  /** @param date milliseconds since 1970 */
  constructor(keys: StateKeys, date: () => number) {
    this.#keys = keys;
    this.#date = date;
  }

  /**
   * Creates the key of a view.
   *
   * @param uri the resource that the view shows
   * @param until the date at which the key expires, in milliseconds since 1970
   */
  create(principal: string, uri: string, until: number): string {
    return this.#keys.ring.seal({ id: randomId(ID_LENGTH), until }, [VIEW_META, principal, uri]);
  }

  /** Returns the view of a key; undefined if the key is of another principal or resource, has expired, or is forged. */
  open(key: string | undefined, principal: string, uri: string): OpenedView | undefined {
    if (key === undefined) return undefined;
    const opened = this.#keys.ring.open(key, [VIEW_META, principal, uri]);
    if (!opened.ok || !isObject(opened.payload)) return undefined;
    const { id, until } = opened.payload;
    return typeof id === 'string' && typeof until === 'number' && until > this.#date() ? { id } : undefined;
  }
}
