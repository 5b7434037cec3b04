/** The lifecycle of one instance, which `machines/handle.ts` decides: the instance does what the chart accepts, and nothing else. */
import { type HandleLifeEvent, type HandleLifeTag, handleMachine } from '../../../machines/handle.ts';
import { statesOf } from '../../core/kernel/charts/state-table.ts';

const HIBERNATING = statesOf<HandleLifeEvent['type'], HandleLifeTag>(handleMachine);

export class InstanceLifecycle {
  #state = HIBERNATING;

  /** The name of the outermost state that operators see, such as `waking`. */
  get name(): string {
    const [outer = '', inner = ''] = this.#state.path.split('.');
    return outer === 'live' ? inner : outer;
  }

  /** True once the instance has left memory, for good. */
  get over(): boolean {
    return this.#state.final;
  }

  has(tag: HandleLifeTag): boolean {
    return this.#state.has(tag);
  }

  can(event: HandleLifeEvent['type']): boolean {
    return this.#state.after(event) !== undefined;
  }

  /** Takes an event. @returns false if the current state does not accept it; nothing happens then */
  take(event: HandleLifeEvent['type']): boolean {
    const next = this.#state.after(event);
    if (!next) return false;
    this.#state = next;
    return true;
  }
}
