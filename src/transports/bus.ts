/** The bus between transports and the core: eventemitter3 with each listener guarded, so that one that throws silences nobody. */
import { EventEmitter } from 'eventemitter3';
import type { ConnectionEvents } from '../messages/connection-events.ts';

/** A listener threw: which event it was hearing, and what it threw. */
export interface Fault {
  readonly where: string;
  readonly error: unknown;
}

export interface BusEvents extends ConnectionEvents {
  fault: Fault;
}

/** Typed publish and subscribe. A listener that throws becomes a `fault`; the others still hear the event. */
export class Bus {
  readonly #emitter = new EventEmitter();

  /** Hears every `name` until the returned function is called. */
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

  emit<K extends keyof BusEvents>(name: K, event: BusEvents[K]): void {
    this.#emitter.emit(name, event);
  }

  #fault(where: keyof BusEvents, error: unknown): void {
    // A fault listener that throws has nobody left to tell.
    if (where !== 'fault') this.emit('fault', { where, error });
  }
}
