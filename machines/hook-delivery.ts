/** The lifecycle of a delivery to a webhook: it waits, its handler runs, and in the end it is done or a dead letter. Pure. */
import { Chart } from './chart/chart.ts';

export type HookDeliveryEvent =
  /** An attempt begins. */
  | { type: 'start' }
  /** The handler has returned. */
  | { type: 'succeed' }
  /** The handler has failed, and another attempt follows. */
  | { type: 'fail' }
  /** The process stops, or another node takes over: the next owner attempts it again. */
  | { type: 'lose' }
  /** No attempt is left. */
  | { type: 'give up' };

export type HookDeliveryState = 'waiting' | 'running' | 'done' | 'dead';

/** `open`: its handler has not succeeded, and may run again. */
export const hookDeliveryMachine = new Chart<HookDeliveryEvent, 'open', HookDeliveryState>({
  id: 'hook-delivery',
  initial: 'waiting',
  states: {
    waiting: {
      description: 'durable, and answered with 2xx',
      tags: ['open'],
      on: { start: 'running', 'give up': { target: 'dead', description: 'each attempt has ended its process' } },
    },
    running: {
      description: 'its handler runs',
      tags: ['open'],
      on: {
        succeed: 'done',
        fail: { target: 'waiting', description: 'until the time of the next attempt' },
        lose: { target: 'waiting', description: 'the process has let go of it' },
        'give up': 'dead',
      },
    },
    done: { type: 'final' },
    dead: { description: 'a dead letter, which people may send again', type: 'final' },
  },
});
