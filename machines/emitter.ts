/** The lifecycle of the single writer to a client: it forwards mail, holds it, or is closed. Pure. */
import { Chart } from './chart/chart.ts';

export type EmitterEvent =
  /** The client reads more slowly than the server writes. */
  { type: 'slow' } | { type: 'drained' } | { type: 'close' };

export const emitterMachine = new Chart<EmitterEvent>({
  id: 'emitter',
  initial: 'flowing',
  states: {
    flowing: { on: { slow: 'paused', close: 'closed' } },
    paused: {
      description: 'results wait; only the latest progress is stored; log messages have a limit',
      on: { drained: 'flowing', close: 'closed' },
    },
    closed: { type: 'final' },
  },
});
