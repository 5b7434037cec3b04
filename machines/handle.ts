/** The lifecycle of an instance behind a handle, around its author's machine: from its activation until it leaves memory. Pure. */
import { Chart } from './chart/chart.ts';

export type HandleLifeEvent =
  /** A call or a timer requires the instance: the server loads it from the store. */
  | { type: 'wake' }
  /** The instance is in memory, and its machine runs. */
  | { type: 'activated' }
  /** The store cannot read the instance now. */
  | { type: 'unread' }
  /** The instance has changed without a call, through a timer or an invocation. */
  | { type: 'change' }
  /** The changes of a turn go to the store. */
  | { type: 'commit' }
  /** The store has made them durable. */
  | { type: 'durable' }
  /** The instance crashed and restarts from its last snapshot. */
  | { type: 'restart' }
  /** An event has crashed the instance too often: the server writes its dead letter. */
  | { type: 'bury' }
  /** The instance has crashed too often: the server writes its failure. */
  | { type: 'quarantine' }
  /** The failure is durable. */
  | { type: 'quarantined' }
  /** The author's machine has reached its final state. */
  | { type: 'finish' }
  /** The author's machine has failed. */
  | { type: 'fail' }
  /** A client has ended the instance. */
  | { type: 'end' }
  /** The instance is idle and leaves memory. */
  | { type: 'rest' }
  /** The lifetime of the handle is over. */
  | { type: 'expire' }
  /** The instance leaves memory, for whatever reason. */
  | { type: 'leave' };

/**
 * *loaded*: the instance is in memory. *ready*: its next call or change can be processed. *pending*: changes exist that are
 * not durable. *changed*: some of them are not in a commit yet. *away*: calls wait until the instance is loaded.
 */
export type HandleLifeTag = 'loaded' | 'ready' | 'pending' | 'changed' | 'away';

export const handleMachine = new Chart<HandleLifeEvent, HandleLifeTag>({
  id: 'handle',
  initial: 'live',
  states: {
    live: {
      initial: 'hibernating',
      on: {
        expire: { target: 'expired', description: 'its time is over' },
        leave: { target: 'left', description: 'it leaves memory' },
      },
      states: {
        hibernating: { id: 'hibernating', description: 'it is in the store only', on: { wake: 'waking' } },
        waking: {
          description: 'it is being read',
          tags: ['away'],
          on: {
            activated: 'active',
            restart: { target: 'waking', description: 'it crashed while it was read' },
            unread: { target: 'hibernating', description: 'it cannot be read now' },
            quarantine: { target: 'quarantining', description: 'it ended the process too often' },
            finish: 'done',
            fail: 'failed',
            end: 'ended',
          },
        },
        active: {
          id: 'active',
          initial: 'idle',
          on: {
            restart: { target: 'waking', description: 'it crashed' },
            bury: { target: '.burying', description: 'an event crashed it too often' },
            quarantine: { target: 'quarantining', description: 'it crashed too often' },
            finish: 'done',
            fail: 'failed',
            end: { target: 'ended', description: 'by a client' },
          },
          states: {
            idle: {
              tags: ['loaded', 'ready'],
              on: {
                change: 'changed',
                commit: 'committing',
                rest: { target: '#hibernating', description: 'nothing is to be done' },
              },
            },
            changed: {
              description: 'a change waits for its turn',
              tags: ['loaded', 'ready', 'pending', 'changed'],
              on: { commit: 'committing' },
            },
            committing: {
              initial: 'quiet',
              states: {
                quiet: {
                  tags: ['loaded', 'pending'],
                  on: { durable: '#active.idle', change: 'changed' },
                },
                changed: {
                  description: 'it has changed since',
                  tags: ['loaded', 'pending', 'changed'],
                  on: { durable: '#active.changed' },
                },
              },
            },
            burying: { description: 'a dead letter is being written', tags: ['away'] },
          },
        },
        done: { tags: ['loaded', 'ready'], on: { rest: 'hibernating' } },
        failed: { tags: ['loaded', 'ready'], on: { rest: 'hibernating' } },
        ended: { tags: ['loaded', 'ready'], on: { rest: 'hibernating' } },
        quarantining: {
          description: 'its failure is being written',
          tags: ['away'],
          on: { quarantined: 'quarantined' },
        },
        quarantined: {},
      },
    },
    expired: { type: 'final' },
    left: { type: 'final', description: 'the next call activates another instance' },
  },
});
