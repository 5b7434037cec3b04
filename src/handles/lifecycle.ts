/** Steps the life of a handle, as `machines/handle.ts` draws it. The chart keeps nothing, so each step is looked up once. */
import { transition } from 'xstate';
import { type HandleLifeEvent, handleMachine } from '../../machines/handle.ts';
import type { HandleStatus } from '../messages/handle-messages.ts';

export type InstanceLife = keyof typeof handleMachine.states;

const steps = new Map<string, InstanceLife>();

/** The state after an event; the same one, where it does not take it. */
export function stepLife(life: InstanceLife, event: HandleLifeEvent): InstanceLife {
  const key = `${life} ${event.type}`;
  const known = steps.get(key);
  if (known) return known;
  const [next] = transition(handleMachine, handleMachine.resolveState({ value: life }), event);
  const after = next.value;
  steps.set(key, after);
  return after;
}

/** Where an instance begins that is read from the store. */
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
