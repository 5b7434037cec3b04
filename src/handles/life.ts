/** Steps the life of a handle, as `machines/handle.ts` draws it. The chart keeps nothing, so each step is looked up once. */
import { transition } from 'xstate';
import { type HandleLifeEvent, handleMachine } from '../../machines/handle.ts';
import type { HandleStatus } from '../messages/handles.ts';

export type Life = keyof typeof handleMachine.states;

const steps = new Map<string, Life>();

/** The state after an event; the same one, where it does not take it. */
export function stepLife(life: Life, event: HandleLifeEvent): Life {
  const key = `${life} ${event.type}`;
  const known = steps.get(key);
  if (known) return known;
  const [next] = transition(handleMachine, handleMachine.resolveState({ value: life }), event);
  const after = next.value;
  steps.set(key, after);
  return after;
}

/** Where an instance begins that is read from the store. */
export function lifeOf(status: HandleStatus): Life {
  switch (status) {
    case 'active':
      return 'hibernating';
    case 'done':
    case 'failed':
    case 'ended':
      return status;
  }
}
