/** The lifecycle of the server: when it accepts requests, only finishes them, or has stopped. Pure. */
import { Chart } from './chart/chart.ts';

export type ServerEvent =
  | { type: 'started' }
  /** The server was asked to close. */
  | { type: 'drain' }
  /** Nothing is in flight. */
  | { type: 'idle' }
  /** The grace time for requests in flight is over. */
  | { type: 'grace over' }
  /** Every transport is closed. */
  | { type: 'stopped' };

/** `accepting`: the server serves new requests. `finishing`: it finishes those in flight and rejects new ones. */
export const serverMachine = new Chart<ServerEvent, 'accepting' | 'finishing'>({
  id: 'server',
  initial: 'starting',
  states: {
    starting: { on: { started: 'running', drain: 'stopping' } },
    running: { tags: ['accepting'], on: { drain: 'draining' } },
    draining: {
      tags: ['finishing'],
      on: { idle: { target: 'stopping', description: 'nothing is in flight' }, 'grace over': 'stopping' },
    },
    stopping: { on: { stopped: { target: 'stopped', description: 'every transport is closed' } } },
    stopped: { type: 'final' },
  },
});
