/** The lifecycle of a handle around its author's machine: in memory or hibernating, until it ends. Pure. */
import { setup } from 'xstate';

export type HandleLifeEvent =
  /** A call or a timer requires it: it is loaded from the store. */
  | { type: 'wake' }
  | { type: 'woken' }
  /** It cannot be read now. */
  | { type: 'unread' }
  /** It crashed or could not be persisted: it restarts from its last snapshot. */
  | { type: 'restart' }
  /** It is idle and leaves memory. */
  | { type: 'rest' }
  /** Its machine has reached its final state. */
  | { type: 'finish' }
  /** Its machine has failed. */
  | { type: 'fail' }
  /** It has crashed too often. */
  | { type: 'set aside' }
  /** A client has ended it. */
  | { type: 'end' }
  /** Its lifetime is over. */
  | { type: 'expire' };

export const handleMachine = setup({
  types: { events: {} as HandleLifeEvent, tags: {} as 'living' | 'awake' },
}).createMachine({
  id: 'handle',
  initial: 'hibernating',
  on: { expire: { target: '.expired', description: 'its time is over' } },
  states: {
    hibernating: { description: 'it is in the store only', tags: ['living'], on: { wake: 'waking' } },
    waking: {
      description: 'it is being read',
      tags: ['living'],
      on: {
        woken: 'active',
        unread: { target: 'hibernating', description: 'it cannot be read now' },
        'set aside': 'quarantined',
      },
    },
    active: {
      tags: ['living', 'awake'],
      on: {
        rest: { target: 'hibernating', description: 'nothing is to be done' },
        restart: { target: 'waking', description: 'it crashed, or could not be kept' },
        finish: 'done',
        fail: 'failed',
        'set aside': { target: 'quarantined', description: 'it crashed too often' },
        end: { target: 'ended', description: 'by a client' },
      },
    },
    done: {},
    failed: {},
    quarantined: {},
    ended: {},
    expired: { type: 'final' },
  },
});
