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
    remember: assign(({ context, event }) => {
      if (event.type !== 'crash') return {};
      const crashes = [...recent(context, event.at), event.at];
      return { crashes, delayMs: delayOf(context, crashes.length) };
    }),
    forget: assign({ crashes: [], delayMs: 0 }),
  },
}).createMachine({
  id: 'supervisor',
  context: ({ input }) => ({ ...input, crashes: [], delayMs: 0 }),
  initial: 'bearing',
  states: {
    bearing: {
      on: {
        crash: [
          {
            guard: 'tooMany',
            target: 'setAside',
            actions: 'remember',
            description: 'as many as `restarts` in the last `windowMs` already',
          },
          {
            guard: 'backsOff',
            target: 'waiting',
            actions: 'remember',
            description: 'its policy has a `backOff`',
          },
          { actions: 'remember' },
        ],
      },
    },
    waiting: {
      on: {
        crash: [
          { guard: 'tooMany', target: 'setAside', actions: 'remember' },
          { target: 'waiting', actions: 'remember', description: 'a longer wait' },
        ],
        waited: 'bearing',
        release: { target: 'bearing', actions: 'forget' },
      },
    },
    setAside: {
      on: {
        release: {
          target: 'bearing',
          actions: 'forget',
          description: 'by an operator; what it crashed of is forgotten',
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
