/** The lifecycle of the server itself: when it accepts, when it only finishes, when it is done. Pure. */
import { setup } from 'xstate';

export type ServerEvent =
  | { type: 'started' }
  /** Someone asked the server to close. */
  | { type: 'drain' }
  /** Nothing is in flight any more. */
  | { type: 'idle' }
  /** The grace time for what was in flight is over. */
  | { type: 'grace over' }
  /** Every transport is closed. */
  | { type: 'stopped' };

/** `accepting`: new requests are served. `finishing`: those in flight are, new ones are refused. */
export const serverMachine = setup({
  types: { events: {} as ServerEvent, tags: {} as 'accepting' | 'finishing' },
}).createMachine({
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
