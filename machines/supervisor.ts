/** How often an actor may crash before it is set aside: a window of recent crashes, and a limit. Pure: the time comes with the event. */
import { assign, setup } from 'xstate';

export interface RestartPolicy {
  /** Crashes within the window that are borne; one more sets the actor aside. At least 0. */
  readonly restarts: number;
  /** Length of the window, in milliseconds. */
  readonly windowMs: number;
}

/** An actor crashed, at a time in milliseconds. */
export interface CrashEvent {
  type: 'crash';
  at: number;
}

interface Context extends RestartPolicy {
  readonly crashes: readonly number[];
}

export const supervisorMachine = setup({
  types: { input: {} as RestartPolicy, context: {} as Context, events: {} as CrashEvent },
  guards: {
    tooMany: ({ context, event }) => recent(context, event.at).length >= context.restarts,
  },
  actions: {
    remember: assign({ crashes: ({ context, event }) => [...recent(context, event.at), event.at] }),
  },
}).createMachine({
  id: 'supervisor',
  context: ({ input }) => ({ restarts: input.restarts, windowMs: input.windowMs, crashes: [] }),
  initial: 'bearing',
  states: {
    bearing: {
      on: { crash: [{ guard: 'tooMany', target: 'setAside', actions: 'remember' }, { actions: 'remember' }] },
    },
    setAside: { type: 'final' },
  },
});

function recent(context: Context, now: number): readonly number[] {
  return context.crashes.filter((at) => now - at < context.windowMs);
}
