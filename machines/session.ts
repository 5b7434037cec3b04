/** The lifecycle of one legacy client's session and what each state allows. Pure; `src/sessions/session.ts` acts on it. */
import { setup } from 'xstate';

export type SessionEvent =
  /** The client sent `notifications/initialized`. */
  | { type: 'initialized' }
  /** The client left, the server is stopping, or the session failed. */
  | { type: 'close' };

/**
 * `serving`: requests are served (MCP 2025-11-25 lifecycle: a client should wait for the response to `initialize`, not for
 * its own `initialized`). `announcing`: the server may send unsolicited notifications, such as `list_changed`.
 */
export const sessionMachine = setup({
  types: { events: {} as SessionEvent, tags: {} as 'serving' | 'announcing' },
}).createMachine({
  id: 'session',
  initial: 'initializing',
  states: {
    initializing: {
      description: 'the answer to `initialize` is on its way or was given',
      tags: ['serving'],
      on: { initialized: 'ready', close: 'closed' },
    },
    ready: { tags: ['serving', 'announcing'], on: { close: 'closed' } },
    closed: { type: 'final' },
  },
});
