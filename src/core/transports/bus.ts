/** The bus between transports and the core. Its listeners are guarded: one that throws does not stop the others. */
import type { ConnectionEvents } from '../messages/connection-events.ts';

/** A listener threw: the event that it handled, and the thrown value. */
export interface Fault {
  readonly where: string;
  readonly error: unknown;
}

export interface BusEvents extends ConnectionEvents {
  fault: Fault;
}

/** An object for each subscription, so that one function may subscribe twice. */
interface Subscription<E> {
  readonly listener: (event: E) => void;
}

/**
 * Typed publish and subscribe. A listener that throws becomes a `fault`; the other listeners still receive the event.
 */
export class Bus {
  /** A list is replaced when it changes, so that an event goes to the listeners that existed when it was emitted. */
  readonly #subscriptions = new Map<keyof BusEvents, readonly Subscription<never>[]>();

  /** Subscribes to `name` until the returned function is called. */
  on<K extends keyof BusEvents>(name: K, listener: (event: BusEvents[K]) => void): () => void {
    const all = this.#subscriptions;
    const own: Subscription<never> = { listener };
    all.set(name, [...(all.get(name) ?? []), own]);
    return () => {
      const others = all.get(name)?.filter((each) => each !== own);
      if (others?.length) all.set(name, others);
      else all.delete(name);
    };
  }

  /** True if `name` has a listener: without one, its event need not be created. */
  has(name: keyof BusEvents): boolean {
    return this.#subscriptions.has(name);
  }

  emit<K extends keyof BusEvents>(name: K, event: BusEvents[K]): void {
    // The subscriptions under a name are for its event.
    const subscriptions = this.#subscriptions.get(name) as readonly Subscription<BusEvents[K]>[] | undefined;
    if (!subscriptions) return;
    for (const { listener } of subscriptions) {
      try {
        listener(event);
      } catch (error) {
        // If a fault listener throws, no listener is left that could report it.
        if (name !== 'fault') this.emit('fault', { where: name, error });
      }
    }
  }
}
