/** The supervisor of a part that may crash: the part continues, starts again after a delay, or is quarantined. Pure. */
import { Chart } from './chart/chart.ts';

export type SupervisorEvent =
  /** The part crashed, and continues at once. */
  | { type: 'crash' }
  /** The part crashed, and starts again after a delay. */
  | { type: 'delay' }
  /** The delay has passed. */
  | { type: 'waited' }
  /** The part crashed more often than its policy tolerates. */
  | { type: 'exceed' }
  /** An operator releases the part, because the cause of its crashes was fixed. */
  | { type: 'release' };

export const supervisorMachine = new Chart<SupervisorEvent, never, 'tolerating' | 'waiting' | 'quarantined'>({
  id: 'supervisor',
  initial: 'tolerating',
  states: {
    tolerating: {
      on: {
        crash: 'tolerating',
        delay: { target: 'waiting', description: 'the policy has a `backOff`' },
        exceed: { target: 'quarantined', description: 'more than `restarts` crashes in the last `windowMs`' },
      },
    },
    waiting: { on: { waited: 'tolerating', release: 'tolerating', exceed: 'quarantined' } },
    quarantined: { on: { release: { target: 'tolerating', description: 'by an operator; forgets the crashes' } } },
  },
});
