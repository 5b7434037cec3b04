/**
 * The lifecycle of a client's connection to one server: opening a channel, negotiating an era, signing in, serving calls,
 * and recovering. Pure: times and random numbers come with the events.
 */
import { assign, setup } from 'xstate';

export interface ConnectionInput {
  /** Consecutive failed attempts after which the connection is suspended. At least 1. */
  readonly attempts: number;
  /** Delay in milliseconds after the first failed attempt, doubled with each further one up to `toMs`. */
  readonly backOff: { readonly fromMs: number; readonly toMs: number };
  /** Delay in milliseconds before a suspended connection makes a trial. */
  readonly suspendMs: number;
  /** Milliseconds of service after which earlier failures no longer count. */
  readonly stableMs: number;
}

export type ConnectionEvent =
  /** A caller needs the connection. */
  | { type: 'need' }
  /** The channel is open. `era`: what is known about the server from an earlier connection. */
  | { type: 'opened'; era?: 'modern' | 'legacy' | undefined }
  /** The server does not know the modern era, so that `initialize` follows. */
  | { type: 'legacy' }
  /** The server does not answer the probe: it is legacy and ignores it, or it is slow. */
  | { type: 'silent' }
  /** The server answers the probe after `initialize` was sent. */
  | { type: 'answered late' }
  /** The server rejects `initialize`. */
  | { type: 'rejected' }
  /** The server rejects the revision of the probe and names a common one: the probe is sent again, once. */
  | { type: 'other revision' }
  /** The server ended the channel before it answered the probe. */
  | { type: 'probe killed' }
  /** The server rejects POSTs: the next attempt uses the transport of 2024-11-05. */
  | { type: 'other transport' }
  /** The server and the client agree on a revision, at a time in milliseconds. */
  | { type: 'negotiated'; at: number }
  /** The server wants a token that the client does not have. */
  | { type: 'unauthorized' }
  | { type: 'authorized'; era?: 'modern' | 'legacy' | undefined }
  /** Sign-in failed, or no person is there to sign in. `status` 403: the token that is there still serves other calls. */
  | { type: 'refused'; status: 401 | 403 }
  /** The attempt failed. `jitter`: 0 to 1. `final`: another attempt would fail the same way. */
  | { type: 'failed'; jitter: number; final: boolean }
  /** The server has forgotten the session (404). */
  | { type: 'session lost' }
  /** An open connection broke, at a time in milliseconds. */
  | { type: 'gone'; at: number; jitter: number }
  /** The delay has passed. */
  | { type: 'due' }
  /** The client closes: calls in flight may finish. */
  | { type: 'drain' }
  /** Nothing is in flight any more. */
  | { type: 'settled' }
  /** The time for draining is over. */
  | { type: 'late' };

/** Sign-ins in a row after which a server that still wants a token counts as one that rejects it. */
const MAX_SIGN_INS = 3;

interface ConnectionContext extends ConnectionInput {
  /** Consecutive failed attempts. */
  readonly failures: number;
  /** The delay of `backingOff` or `suspended`, in milliseconds. */
  readonly delayMs: number;
  /** The time of the last negotiation. */
  readonly since: number;
  /** Sign-ins since the last negotiation. */
  readonly signIns: number;
}

/** The transitions of a failed attempt: retry after a delay, or wait for a trial after too many failures in a row. */
const RETRY = [
  { guard: 'hopeless', target: 'suspended', actions: 'waitForTrial' },
  { target: 'backingOff', actions: 'countFailure' },
] as const;
/** The transitions of a connection that served calls: after long service, earlier failures no longer count. */
const AFTER_SERVICE = [{ guard: 'stable', target: 'backingOff', actions: 'restartCount' }, ...RETRY] as const;

/**
 * `waiting`: calls wait for the connection. `serving`: calls are sent. Calls in any other state are rejected at once.
 * `timed`: the state ends with `due` after `context.delayMs`.
 */
export const connectionMachine = setup({
  types: {
    input: {} as ConnectionInput,
    context: {} as ConnectionContext,
    events: {} as ConnectionEvent,
    tags: {} as 'waiting' | 'serving' | 'timed',
  },
  guards: {
    knownLegacy: ({ event }) => (event.type === 'opened' || event.type === 'authorized') && event.era === 'legacy',
    tokenServes: ({ event }) => event.type === 'refused' && event.status === 403,
    hopeless: ({ context, event }) =>
      (event.type === 'failed' && event.final) || context.failures + 1 >= context.attempts,
    tokenRejected: ({ context }) => context.signIns >= MAX_SIGN_INS,
    stable: ({ context, event }) => event.type === 'gone' && event.at - context.since >= context.stableMs,
  },
  actions: {
    countFailure: assign(({ context, event }) => {
      const jitter = event.type === 'failed' || event.type === 'gone' ? event.jitter : 0;
      return { failures: context.failures + 1, delayMs: delayOf(context, context.failures, jitter) };
    }),
    restartCount: assign(({ context, event }) => {
      const jitter = event.type === 'gone' ? event.jitter : 0;
      return { failures: 1, delayMs: delayOf(context, 0, jitter) };
    }),
    waitForTrial: assign(({ context }) => ({ failures: context.failures + 1, delayMs: context.suspendMs })),
    noteStart: assign(({ event }) => ({ signIns: 0, ...(event.type === 'negotiated' ? { since: event.at } : {}) })),
    countSignIn: assign(({ context }) => ({ signIns: context.signIns + 1 })),
    forgetSignIns: assign({ signIns: 0 }),
  },
}).createMachine({
  id: 'connection',
  context: ({ input }) => ({ ...input, failures: 0, delayMs: 0, since: 0, signIns: 0 }),
  initial: 'idle',
  on: { drain: '.draining' },
  states: {
    idle: { description: 'no channel is open, and no caller needs one', on: { need: 'connecting' } },
    connecting: {
      description: 'a process starts, or a socket opens',
      tags: ['waiting'],
      on: {
        opened: [
          { guard: 'knownLegacy', target: 'negotiating.initializing', description: 'remembered as legacy' },
          { target: 'negotiating.probing' },
        ],
        unauthorized: [
          { guard: 'tokenRejected', target: 'idle', actions: 'forgetSignIns' },
          { target: 'admitting', description: 'the channel opens for a token only' },
        ],
        failed: RETRY,
      },
    },
    admitting: {
      description: 'a token is requested, without which no channel opens',
      tags: ['waiting'],
      on: {
        authorized: { target: 'connecting', actions: 'countSignIn' },
        refused: { target: 'idle', actions: 'forgetSignIns' },
      },
    },
    reopening: {
      description: 'the server ended at the probe: it is opened again, and `initialize` is the first request',
      tags: ['waiting'],
      on: {
        opened: 'negotiating.initializing',
        failed: RETRY,
      },
    },
    negotiating: {
      description: 'the client learns the era and the revision of the server',
      tags: ['waiting'],
      initial: 'probing',
      states: {
        probing: {
          description: '`server/discover` waits for its response',
          on: {
            legacy: 'initializing',
            silent: 'guessing',
            'other revision': 'reprobing',
            'probe killed': '#connection.reopening',
          },
        },
        reprobing: {
          description: '`server/discover` again: the server named another revision, or was slow',
          on: { legacy: 'initializing', silent: 'initializing', 'probe killed': '#connection.reopening' },
        },
        guessing: {
          description: '`initialize` waits for its response from a server that was silent',
          on: {
            rejected: { target: 'reprobing', description: 'it was slow, and is not legacy' },
            'answered late': { target: '#connection.connecting', description: 'it was slow, and is modern' },
          },
        },
        initializing: {
          description: '`initialize` waits for its response',
          on: { 'other transport': '#connection.connecting' },
        },
      },
      on: {
        negotiated: { target: 'ready', actions: 'noteStart' },
        unauthorized: [
          { guard: 'tokenRejected', target: 'unauthorized', actions: 'forgetSignIns' },
          { target: 'authorizing' },
        ],
        failed: RETRY,
        gone: RETRY,
      },
    },
    authorizing: {
      description: 'a token is requested, and a person may have to sign in',
      tags: ['waiting'],
      on: {
        authorized: [
          { guard: 'knownLegacy', target: 'negotiating.initializing', actions: 'countSignIn' },
          { target: 'negotiating.probing', actions: 'countSignIn' },
        ],
        refused: { target: 'unauthorized', actions: 'forgetSignIns' },
        gone: RETRY,
      },
    },
    reauthorizing: {
      description: 'the token expired, or a call needs more rights',
      tags: ['waiting'],
      on: {
        authorized: 'ready',
        refused: [
          { guard: 'tokenServes', target: 'ready', description: 'only the calls that need more rights fail' },
          { target: 'unauthorized' },
        ],
        gone: AFTER_SERVICE,
      },
    },
    unauthorized: {
      description: 'sign-in failed; the next caller starts another one',
      on: { need: 'authorizing', gone: 'idle' },
    },
    ready: {
      tags: ['serving'],
      on: {
        'session lost': { target: 'negotiating.initializing', description: 'one new session for all calls' },
        unauthorized: 'reauthorizing',
        gone: AFTER_SERVICE,
      },
    },
    backingOff: {
      tags: ['waiting', 'timed'],
      on: { due: 'connecting' },
    },
    suspended: {
      description: 'too many attempts failed; the next caller, or the time, starts a trial',
      tags: ['timed'],
      on: { need: 'connecting', due: 'connecting' },
    },
    draining: {
      description: 'calls in flight finish; new calls are rejected',
      on: { drain: undefined, settled: 'closed', late: 'closed' },
    },
    closed: { type: 'final', on: { drain: undefined } },
  },
});

function delayOf({ backOff }: ConnectionInput, failures: number, jitter: number): number {
  // Half of the delay is random, so that clients of one failed server do not come back together.
  const full = Math.min(backOff.toMs, backOff.fromMs * 2 ** failures);
  return Math.round(full / 2 + (full / 2) * jitter);
}
