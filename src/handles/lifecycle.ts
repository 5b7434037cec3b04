/** Steps the lifecycle of a handle through `machines/handle.ts`. The chart has no context, so each step is computed once and cached. */
import { transition } from 'xstate';
import { type HandleLifeEvent, handleMachine } from '../../machines/handle.ts';
import type { HandleStatus } from '../messages/handle-messages.ts';

export type InstanceLife = keyof typeof handleMachine.states;

const steps = new Map<string, InstanceLife>();

/** Returns the state after an event; the same state if it does not accept the event. */
export function stepLife(life: InstanceLife, event: HandleLifeEvent): InstanceLife {
  const key = `${life} ${event.type}`;
  const known = steps.get(key);
  if (known) return known;
  const [next] = transition(handleMachine, handleMachine.resolveState({ value: life }), event);
  const after = next.value;
  steps.set(key, after);
  return after;
}

/** Returns the initial state of an instance that is loaded from the store. */
export function lifeOf(status: HandleStatus): InstanceLife {
  switch (status) {
    case 'active':
      return 'hibernating';
    case 'done':
    case 'failed':
    case 'ended':
      return status;
  }
}
