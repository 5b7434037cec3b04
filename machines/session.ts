/**
 * The lifecycle of one legacy client's session and what each state allows. Pure. `src/core/sessions/session.actor.ts` acts on it while the
 * session is in memory, `src/core/sessions/session-repository.ts` while only the store holds it.
 */
import { Chart } from './chart/chart.ts';

export type SessionEvent =
  /** The client sent `notifications/initialized`. */
  | { type: 'initialized' }
  /** No message has used it for a while. */
  | { type: 'rest' }
  /** A message arrived for an idle session. */
  | { type: 'use' }
  /** The session leaves memory: the store holds it, and it was not used for `limits.sessionSleepMs`. */
  | { type: 'hibernate' }
  /** A request arrived for a hibernating session: it is read from the store. */
  | { type: 'wake' }
  /** The session was read. */
  | { type: 'restored' }
  /** The session could not be read now. */
  | { type: 'unread' }
  /** The client left, the server is stopping, the session failed, or its time without use is over. */
  | { type: 'close' };

/**
 * `serving`: requests are served (MCP 2025-11-25 lifecycle: a client should wait for the response to `initialize`, not for
 * its own `initialized`). `announcing`: the server may send unsolicited notifications, such as `list_changed`.
 */
export const sessionMachine = new Chart<SessionEvent, 'serving' | 'announcing'>({
  id: 'session',
  initial: 'initializing',
  states: {
    initializing: {
      description: 'the response to `initialize` is being sent or was sent',
      tags: ['serving'],
      on: { initialized: 'ready', hibernate: 'hibernating', close: 'closed' },
    },
    ready: {
      tags: ['announcing'],
      initial: 'active',
      on: { hibernate: 'hibernating', close: 'closed' },
      states: {
        active: { tags: ['serving'], on: { rest: 'idle' } },
        idle: { description: 'the next request makes it active before it is served', on: { use: 'active' } },
      },
    },
    hibernating: {
      description: 'only the store holds it',
      on: { wake: 'waking', close: { target: 'closed', description: 'it has expired' } },
    },
    waking: {
      description: 'it is being read',
      on: {
        restored: 'initializing',
        unread: { target: 'hibernating', description: 'it cannot be read now' },
        close: { target: 'closed', description: 'its stored data is damaged, or it has ended' },
      },
    },
    closed: { type: 'final' },
  },
});
