/** The lifecycle of a request that has to wait for its client: it runs, awaits input, runs on, and ends. Pure. A request that waits for nobody has no chart. */
import { setup } from 'xstate';

export type RequestEvent =
  /** Its handler has asked something. */
  | { type: 'ask' }
  /** A question was answered, and none is open any more. */
  | { type: 'answered' }
  /** Its handler has ended: with a result, or with an error. */
  | { type: 'succeed' }
  | { type: 'fail' }
  /** Its client no longer wants it, or has left. */
  | { type: 'cancel' }
  /** Nobody answered in time. */
  | { type: 'expire' };

export const requestMachine = setup({
  types: { events: {} as RequestEvent, tags: {} as 'open' },
}).createMachine({
  id: 'request',
  initial: 'running',
  states: {
    running: {
      tags: ['open'],
      on: {
        ask: { target: 'awaiting input', description: 'its handler asks something' },
        succeed: 'succeeded',
        fail: 'failed',
        cancel: 'cancelled',
        expire: 'timed out',
      },
    },
    'awaiting input': {
      tags: ['open'],
      on: {
        answered: { target: 'running', description: 'nothing is open any more' },
        succeed: 'succeeded',
        fail: 'failed',
        cancel: 'cancelled',
        expire: { target: 'timed out', description: 'nobody answered in time, and nobody waits' },
      },
    },
    succeeded: { type: 'final' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
    'timed out': { type: 'final' },
  },
});
