/** The lifecycle of the one door out to a client: whether it passes mail on, holds it, or is shut. Pure. */
import { setup } from 'xstate';

export type EmitterEvent =
  /** The peer reads slower than we write. */
  { type: 'slow' } | { type: 'drained' } | { type: 'close' };

export const emitterMachine = setup({
  types: { events: {} as EmitterEvent },
}).createMachine({
  id: 'emitter',
  initial: 'flowing',
  states: {
    flowing: { on: { slow: 'paused', close: 'closed' } },
    paused: {
      description: 'results wait, progress keeps its latest, logs are bounded',
      on: { drained: 'flowing', close: 'closed' },
    },
    closed: { type: 'final' },
  },
});
