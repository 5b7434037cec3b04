/** How often an actor may crash before it is set aside, and how long it waits before it goes on: a window of recent crashes, a limit, a back-off. Pure: the time comes with the event. */
import { assign, setup } from 'xstate';

export interface RestartPolicy {
  /** Crashes within the window that are borne; one more sets the actor aside. At least 0. */
  readonly restarts: number;
  /** Length of the window, in milliseconds. */
  readonly windowMs: number;
  /** Milliseconds that it waits after the first crash of a window, doubled with each further one, and the most. Absent: it goes on at once. */
  readonly backOff?: { readonly fromMs: number; readonly toMs: number };
}

/** An actor crashed, at a time in milliseconds. */
export interface CrashEvent {
  type: 'crash';
  at: number;
}

/** It has waited for as long as it was told to. */
export interface WaitedEvent {
  type: 'waited';
}

/** An operator lets it go on: what it crashed of is mended. */
export interface ReleaseEvent {
  type: 'release';
}

interface Context extends RestartPolicy {
  readonly crashes: readonly number[];
  /** While it waits: for how many milliseconds. */
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
