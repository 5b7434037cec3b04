/** The life of a handle around its author's machine: in memory or hibernating, until it comes to an end. Pure. */
import { setup } from 'xstate';

export type HandleLifeEvent =
  /** Something is to be done with it: it is read from the store. */
  | { type: 'wake' }
  | { type: 'woken' }
  /** It cannot be read now. */
  | { type: 'unread' }
  /** It has crashed, or what it came to could not be kept: it begins anew from what was kept last. */
  | { type: 'restart' }
  /** Nothing is to be done: it leaves memory. */
  | { type: 'rest' }
  /** Its machine has come to its final state. */
  | { type: 'finish' }
  /** Its machine has failed. */
  | { type: 'fail' }
  /** It has crashed too often. */
  | { type: 'set aside' }
  /** A client has ended it. */
  | { type: 'end' }
  /** Its time is over. */
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
