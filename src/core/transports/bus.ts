/**
 * The bus between transports and the core: eventemitter3 with guarded listeners, so that a listener that throws does
 * not stop the others.
 */
import { EventEmitter } from 'eventemitter3';
import type { ConnectionEvents } from '../messages/connection-events.ts';

/** A listener threw: the event that it handled, and the thrown value. */
export interface Fault {
  readonly where: string;
  readonly error: unknown;
}

export interface BusEvents extends ConnectionEvents {
  fault: Fault;
}

/**
 * Typed publish and subscribe. A listener that throws becomes a `fault`; the other listeners still receive the event.
 */
export class Bus {
  readonly #emitter = new EventEmitter();

  /** Subscribes to `name` until the returned function is called. */
  on<K extends keyof BusEvents>(name: K, listener: (event: BusEvents[K]) => void): () => void {
    const guarded = (event: BusEvents[K]): void => {
      try {
        listener(event);
      } catch (error) {
        this.#fault(name, error);
      }
    };
    this.#emitter.on(name, guarded);
    return () => void this.#emitter.off(name, guarded);
  }

  /** True if `name` has a listener: without one, its event need not be created. */
  has(name: keyof BusEvents): boolean {
    return this.#emitter.listenerCount(name) > 0;
  }

  emit<K extends keyof BusEvents>(name: K, event: BusEvents[K]): void {
    this.#emitter.emit(name, event);
  }

  #fault(where: keyof BusEvents, error: unknown): void {
    // If a fault listener throws, no listener is left that could report it.
    if (where !== 'fault') this.emit('fault', { where, error });
  }
}
