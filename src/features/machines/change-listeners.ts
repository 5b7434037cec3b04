/** The listeners for the changes of all handles of a server. A listener that throws does not stop the others. */
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import { isoOf } from '../../core/kernel/clock.ts';
import type { HandleView } from './handle-messages.ts';
import type { HandleRecord } from './handle-record.ts';
import type { HandleChange } from './machine-definition.ts';

export class ChangeListeners {
  readonly #system: ActorSystem;
  readonly #listeners = new Set<(change: HandleChange) => void>();

  constructor(system: ActorSystem) {
    this.#system = system;
  }

  /** Calls the listener after each durable change, until the returned function is called. */
  add(listener: (change: HandleChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reports a change. Only a listener that needs the view calls `view`. */
  changed(
    { name: machine, handle, principal, key }: HandleRecord,
    type: HandleChange['type'],
    view: () => HandleView,
  ): void {
    this.#notify({ type, machine, handle, principal, key, view });
  }

  /**
   * Reports that a handle has expired. Its instance may have hibernated, so its state is not available.
   *
   * @param date now, in milliseconds since 1970
   */
  expired({ handle, name: machine, created, principal, key }: HandleRecord, date: number): void {
    const createdAt = isoOf(created);
    const now = isoOf(Math.round(date));
    const none = { state: null, view: undefined, accepts: [], version: 0 };
    this.#notify({
      ...{ type: 'gone', machine, handle, principal, key },
      view: () => ({ handle, machine, status: 'ended', ...none, created: createdAt, expires: now }),
    });
  }

  #notify(change: HandleChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#system.incident('a listener for changes of handles', error);
      }
    }
  }
}
