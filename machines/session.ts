/** The lifecycle of one legacy client's session: what is allowed now. Pure: it names what follows, `src/sessions/session.ts` does it. */
import { setup } from 'xstate';

export type SessionEvent =
  /** The client said `notifications/initialized`. */
  | { type: 'initialized' }
  /** The client left, the server drained, or the session failed. */
  | { type: 'close' };

/**
 * `serving`: requests pass (MCP 2025-11-25 lifecycle: a client should wait for the answer to `initialize`, not for its own
 * `initialized`). `announcing`: the server may send what was not asked for, such as `list_changed`.
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
