/** The lifecycle of a request that waits for its client: it runs, awaits input, resumes, and ends. Pure. A request without questions has no chart. */
import { setup } from 'xstate';

export type RequestEvent =
  /** Its handler has asked a question. */
  | { type: 'ask' }
  /** A question was answered, and none is open. */
  | { type: 'answered' }
  /** Its handler has ended, with a result or with an error. */
  | { type: 'succeed' }
  | { type: 'fail' }
  /** Its client cancelled it or has left. */
  | { type: 'cancel' }
  /** No answer arrived in time. */
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
