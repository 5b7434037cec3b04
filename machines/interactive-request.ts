/**
 * The lifecycle of a request whose handler needs input from its client: which request carries it, and what its handler
 * does meanwhile. Pure. A request without input requests has no chart.
 */
import { Chart } from './chart/chart.ts';

export type InteractiveRequestEvent =
  /** The handler asks the client of a session over its stream. */
  | { type: 'ask' }
  /** The handler asks, and the input requests go to the client with the response. */
  | { type: 'collect' }
  /** The handler has asked everything of this turn: the response with the input requests is made. */
  | { type: 'suspend' }
  /** An earlier process sent the response with the input requests, and the handler runs before the client retries. */
  | { type: 'restore' }
  /** No input request is open any more. */
  | { type: 'answered' }
  /** The client has retried. */
  | { type: 'resume' }
  /** The request becomes a task. */
  | { type: 'detach' }
  /** The handler has ended, and its result cannot be sent yet: it must become durable, or the client must retry first. */
  | { type: 'hold' }
  /** The result could not be made durable: the client must repeat its request. */
  | { type: 'unsaved' }
  /** The result of the handler, or its error, is sent. */
  | { type: 'succeed' }
  | { type: 'fail' }
  /** The client cancelled the request or has left. */
  | { type: 'cancel' }
  /** No answer arrived in time. */
  | { type: 'expire' };

/**
 * `awaiting`: the handler waits for its client, which does not count as running time. `suspended`: no request carries it;
 * the client must retry. `ended`: the handler has ended.
 */
export const interactiveRequestMachine = new Chart<InteractiveRequestEvent, 'awaiting' | 'suspended' | 'ended'>({
  id: 'interactive request',
  initial: 'running',
  states: {
    running: {
      on: {
        ask: 'asking',
        collect: 'collecting',
        restore: 'running while suspended',
        detach: 'running as task',
        hold: 'storing result',
        succeed: 'succeeded',
        fail: 'failed',
        cancel: 'cancelled',
      },
    },
    asking: {
      description: 'the client of a session was asked over its stream',
      tags: ['awaiting'],
      on: {
        ask: { target: 'asking', description: 'the client gets the full time from each one on' },
        answered: 'running',
        collect: { target: 'collecting', description: 'only input requests to the model are open' },
        expire: { target: 'running', description: 'the handler continues without an answer' },
        detach: 'task awaiting input',
        hold: 'storing result',
        succeed: 'succeeded',
        fail: 'failed',
        cancel: 'cancelled',
      },
    },
    collecting: {
      description: 'until the end of the turn the handler may ask more',
      tags: ['awaiting'],
      on: {
        collect: 'collecting',
        suspend: 'suspended',
        ask: 'asking',
        answered: 'running',
        detach: 'task awaiting input',
        hold: 'storing result',
        succeed: 'succeeded',
        fail: 'failed',
        cancel: 'cancelled',
      },
    },
    suspended: {
      description: 'the client has the input requests and must retry',
      tags: ['awaiting', 'suspended'],
      on: {
        ask: 'suspended',
        collect: { target: 'suspended', description: 'the next response asks it' },
        resume: 'running',
        answered: { target: 'running while suspended', description: 'the handler continues without an answer' },
        detach: 'task awaiting input',
        hold: 'result waits for client',
        expire: 'timed out',
        cancel: 'cancelled',
      },
    },
    'running while suspended': {
      tags: ['suspended'],
      on: {
        resume: 'running',
        ask: 'suspended',
        collect: 'suspended',
        detach: 'running as task',
        hold: 'result waits for client',
        expire: 'timed out',
        cancel: 'cancelled',
      },
    },
    'result waits for client': {
      tags: ['suspended', 'ended'],
      on: {
        resume: 'storing result',
        succeed: { target: 'succeeded', description: 'it has become a task' },
        fail: 'failed',
        expire: 'timed out',
        cancel: 'cancelled',
      },
    },
    'storing result': {
      tags: ['ended'],
      on: { succeed: 'succeeded', fail: 'failed', unsaved: 'result waits for client', cancel: 'cancelled' },
    },
    'running as task': {
      on: {
        ask: 'task awaiting input',
        collect: 'task awaiting input',
        succeed: 'succeeded',
        fail: 'failed',
        cancel: 'cancelled',
      },
    },
    'task awaiting input': {
      tags: ['awaiting'],
      on: {
        ask: 'task awaiting input',
        collect: 'task awaiting input',
        answered: 'running as task',
        succeed: 'succeeded',
        fail: 'failed',
        cancel: 'cancelled',
      },
    },
    succeeded: { type: 'final' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
    'timed out': { type: 'final' },
  },
});
