/** The lifecycle of a request in the in-flight table, from the inbound codec to the end of its handler. Pure. */
import { Chart } from './chart/chart.ts';

export type RequestEvent =
  /** The in-flight table admits the request. */
  | { type: 'admit' }
  /** The outcome of the request: its response, a rejection, or the end of a handler that outlived the request. */
  | { type: 'respond' }
  /** The client cancels the request, or has closed its response. */
  | { type: 'cancel' }
  /** The client ends a subscription, which has no handler. */
  | { type: 'unsubscribe' }
  /** The deadline has passed. */
  | { type: 'expire' }
  /** The server stops, or the client has disconnected. */
  | { type: 'abandon' }
  /** The handler continues although its request was answered: nothing waits for the handler any more. */
  | { type: 'detach' };

/** *settled*: nothing more is sent for the request. *detached*: its handler still runs, and counts against `maxRunning`. */
type RequestTag = 'settled' | 'detached';

export const requestMachine = new Chart<RequestEvent, RequestTag>({
  id: 'request',
  initial: 'received',
  states: {
    received: {
      on: { admit: 'in flight', respond: { target: 'answered', description: 'rejected, or served without admission' } },
    },
    'in flight': {
      on: {
        respond: 'answered',
        cancel: 'cancelled',
        unsubscribe: 'ended',
        expire: 'timed out',
        abandon: 'abandoned',
      },
    },
    answered: {
      tags: ['settled'],
      on: { detach: { target: 'detached', description: 'its handler waited for input that will not come' } },
    },
    detached: { tags: ['settled', 'detached'], on: { respond: 'ended' } },
    cancelled: { tags: ['settled', 'detached'], on: { respond: 'ended' } },
    'timed out': { tags: ['settled', 'detached'], on: { respond: 'ended' } },
    abandoned: { tags: ['settled', 'detached'], on: { respond: 'ended' } },
    ended: { tags: ['settled'], type: 'final', description: 'its handler has ended' },
  },
});
