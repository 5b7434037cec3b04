/** The lifecycle of one instance, which `machines/handle.ts` decides: the instance does what the chart accepts, and nothing else. */
import { type HandleLifeEvent, type HandleLifeTag, handleMachine } from '../../../machines/handle.ts';
import { step } from '../../core/kernel/step.ts';

const HIBERNATING = handleMachine.initial;

export class InstanceLifecycle {
  #state = HIBERNATING;

  /** The name of the outermost state that operators see, such as `waking`. */
  get name(): string {
    const [outer = '', inner = ''] = this.#state.path.split('.');
    return outer === 'live' ? inner : outer;
  }

  /** True once the instance has left memory, for good. */
  get over(): boolean {
    return this.#state.status === 'done';
  }

  has(tag: HandleLifeTag): boolean {
    return this.#state.hasTag(tag);
  }

  can(event: HandleLifeEvent['type']): boolean {
    return step(this.#state, { type: event }) !== undefined;
  }

  /** Takes an event. @returns false if the current state does not accept it; nothing happens then */
  take(event: HandleLifeEvent['type']): boolean {
    const next = step(this.#state, { type: event });
    if (!next) return false;
    this.#state = next;
    return true;
  }
}
