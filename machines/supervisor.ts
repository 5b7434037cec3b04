/**
 * The crash policy of an actor: a window of recent crashes, a limit after which the actor is quarantined, and a back-off
 * before each restart. Pure: the time comes with the event.
 */
import { assign, setup } from 'xstate';

export interface RestartPolicy {
  /** Tolerated crashes within the window; one more quarantines the actor. At least 0. */
  readonly restarts: number;
  /** Length of the window, in milliseconds. */
  readonly windowMs: number;
  /** Delay in milliseconds after the first crash of a window, doubled with each further crash up to `toMs`. Default: restart immediately. */
  readonly backOff?: { readonly fromMs: number; readonly toMs: number };
}

/** An actor crashed, at a time in milliseconds. */
export interface CrashEvent {
  type: 'crash';
  at: number;
}

/** The delay has passed. */
export interface WaitedEvent {
  type: 'waited';
}

/** An operator releases the actor, because the cause of its crashes was fixed. */
export interface ReleaseEvent {
  type: 'release';
}

interface Context extends RestartPolicy {
  readonly crashes: readonly number[];
  /** The current delay in milliseconds. */
  readonly delayMs: number;
}

export const supervisorMachine = setup({
  types: {
    input: {} as RestartPolicy,
    context: {} as Context,
    events: {} as CrashEvent | WaitedEvent | ReleaseEvent,
  },
  guards: {
    tooMany: ({ context, event }) => event.type === 'crash' && recent(context, event.at).length >= context.restarts,
    backsOff: ({ context }) => context.backOff !== undefined,
  },
  actions: {
    recordCrash: assign(({ context, event }) => {
      if (event.type !== 'crash') return {};
      const crashes = [...recent(context, event.at), event.at];
      return { crashes, delayMs: delayOf(context, crashes.length) };
    }),
    reset: assign({ crashes: [], delayMs: 0 }),
  },
}).createMachine({
  id: 'supervisor',
  context: ({ input }) => ({ ...input, crashes: [], delayMs: 0 }),
  initial: 'tolerating',
  states: {
    tolerating: {
      on: {
        crash: [
          {
            guard: 'tooMany',
            target: 'quarantined',
            actions: 'recordCrash',
            description: 'more than `restarts` crashes in the last `windowMs`',
          },
          {
            guard: 'backsOff',
            target: 'waiting',
            actions: 'recordCrash',
            description: 'the policy has a `backOff`',
          },
          { actions: 'recordCrash' },
        ],
      },
    },
    waiting: {
      on: {
        crash: [
          { guard: 'tooMany', target: 'quarantined', actions: 'recordCrash' },
          { target: 'waiting', actions: 'recordCrash', description: 'with a longer delay' },
        ],
        waited: 'tolerating',
        release: { target: 'tolerating', actions: 'reset' },
      },
    },
    quarantined: {
      on: {
        release: {
          target: 'tolerating',
          actions: 'reset',
          description: 'by an operator; resets the crashes',
        },
      },
    },
  },
});

function recent(context: Context, now: number): readonly number[] {
  return context.crashes.filter((at) => now - at < context.windowMs);
}

function delayOf({ backOff }: RestartPolicy, crashes: number): number {
  return backOff ? Math.min(backOff.toMs, backOff.fromMs * 2 ** (crashes - 1)) : 0;
}
