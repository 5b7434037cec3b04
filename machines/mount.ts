/**
 * The lifecycle of a mount: which catalogue of its upstream it offers, and when it lists again. Pure: times and random numbers
 * come with the events. `src/gateway/mounts/mount.actor.ts` acts on it.
 */
import { assign, setup } from 'xstate';

export interface MountInput {
  /** Delay in milliseconds after the first failed listing, doubled with each further one up to `toMs`. */
  readonly backOff: { readonly fromMs: number; readonly toMs: number };
  /** Milliseconds in which further changes of the upstream are gathered before it is listed again. */
  readonly gatherMs: number;
  /** The number of listings that may follow each other at once, and the milliseconds after which there may be one more. */
  readonly pace: { readonly listings: number; readonly everyMs: number };
  /** Milliseconds for which a catalogue is offered that cannot be renewed. */
  readonly staleMs: number;
}

export type MountEvent =
  /** The server opens. `expects`: its upstream is not listed before the only client of the server is there. */
  | { type: 'start'; expects: boolean }
  /** The only client of the server is there. */
  | { type: 'client' }
  /** The store has a catalogue, which was listed at a time in milliseconds since 1970. */
  | { type: 'stored'; at: number }
  /** The store has none. */
  | { type: 'nothing stored' }
  /** The upstream was listed, at a time in milliseconds since 1970. `freshMs`: until the next listing, if nothing changes. */
  | { type: 'listed'; at: number; freshMs: number }
  /** Another upstream, which was listed at a time in milliseconds since 1970, takes the place of the present one. */
  | { type: 'moved'; at: number; freshMs: number }
  /** The upstream could not be listed. `jitter`: 0 to 1. */
  | { type: 'failed'; at: number; jitter: number }
  /** The upstream has changed, or changes may have been missed. */
  | { type: 'changed' }
  /** The delay has passed. */
  | { type: 'due' }
  /** A caller wants the upstream to be listed now. */
  | { type: 'refresh' }
  | { type: 'close' };

interface MountContext extends MountInput {
  /** The only client of the server is still to come. */
  readonly expects: boolean;
  /** Consecutive failed listings. */
  readonly failures: number;
  /** The delay of a timed state, in milliseconds. */
  readonly delayMs: number;
  /** The time of the last listing, in milliseconds since 1970. */
  readonly listedAt: number;
  /** The listings that the pace allowed when the last one ended, and the time of its end. */
  readonly allowed: { readonly listings: number; readonly at: number };
}

/** *expecting*: the upstream is listed when the client is there. *listing*: the upstream is being listed. *offering*: a catalogue is offered. *timed*: `due` ends the state after `context.delayMs`. */
type MountTag = 'expecting' | 'listing' | 'offering' | 'timed';

/** The transitions of a listing that a change did not overtake. */
const LISTED = { target: '#mount.offering.current', actions: 'noteListing' } as const;
/** The transitions of a listing that may be older than a change. */
const OVERTAKEN = { target: '#mount.offering.gathering', actions: ['noteListing', 'gather'] } as const;

export const mountMachine = setup({
  types: {
    input: {} as MountInput,
    context: {} as MountContext,
    events: {} as MountEvent,
    tags: {} as MountTag,
  },
  guards: {
    tooOld: ({ context, event }) => event.type === 'failed' && event.at - context.listedAt >= context.staleMs,
    expectsClient: ({ context }) => context.expects,
    // A server may announce a change whenever it is listed, also if it cannot answer.
    inPace: ({ context }) => context.allowed.listings >= 1,
  },
  actions: {
    expect: assign(({ event }) => ({ expects: event.type === 'start' && event.expects })),
    noteListing: assign(({ context, event }) =>
      event.type === 'listed' || event.type === 'moved'
        ? { failures: 0, listedAt: event.at, delayMs: event.freshMs, allowed: allowedAfter(context, event.at) }
        : {},
    ),
    noteStored: assign(({ event }) => (event.type === 'stored' ? { listedAt: event.at } : {})),
    countFailure: assign(({ context, event }) => ({
      failures: context.failures + 1,
      delayMs: delayOf(context, event.type === 'failed' ? event.jitter : 0),
      ...(event.type === 'failed' ? { allowed: allowedAfter(context, event.at) } : {}),
    })),
    gather: assign(({ context }) => ({ delayMs: gatherMsOf(context) })),
  },
}).createMachine({
  id: 'mount',
  context: ({ input }) => ({
    ...input,
    ...{ failures: 0, delayMs: 0, listedAt: 0, expects: false },
    allowed: { listings: input.pace.listings, at: 0 },
  }),
  initial: 'idle',
  on: { close: '.closed' },
  states: {
    idle: { description: 'the server is not open', on: { start: { target: 'restoring', actions: 'expect' } } },
    restoring: {
      description: 'the stored catalogue is being read',
      on: {
        stored: [
          { guard: 'expectsClient', target: 'offering.expecting', actions: 'noteStored' },
          { target: 'offering.renewing', actions: 'noteStored' },
        ],
        'nothing stored': [{ guard: 'expectsClient', target: 'unknown.expecting' }, 'unknown.listing'],
        moved: LISTED,
      },
    },
    unknown: {
      description: 'no catalogue is known, or it is too old: nothing is offered',
      initial: 'listing',
      on: { moved: LISTED },
      states: {
        expecting: {
          description: 'the upstream is listed on the connection of the only client, which is still to come',
          tags: ['expecting'],
          on: { client: 'listing', refresh: 'listing' },
        },
        listing: {
          tags: ['listing'],
          on: { listed: LISTED, failed: { target: 'waiting', actions: 'countFailure' }, changed: 'overtaken' },
        },
        overtaken: {
          description: 'the upstream has changed while it is listed',
          tags: ['listing'],
          on: { listed: OVERTAKEN, failed: { target: 'waiting', actions: 'countFailure' } },
        },
        waiting: {
          tags: ['timed'],
          on: { due: 'listing', changed: { guard: 'inPace', target: 'listing' }, refresh: 'listing' },
        },
      },
    },
    offering: {
      tags: ['offering'],
      initial: 'renewing',
      on: { moved: LISTED },
      states: {
        expecting: {
          description: 'the stored catalogue is offered, and the only client is still to come',
          tags: ['expecting'],
          on: { client: 'renewing', refresh: 'renewing' },
        },
        current: {
          description: 'the catalogue is that of the last listing',
          tags: ['timed'],
          on: {
            changed: { target: 'gathering', actions: 'gather' },
            due: 'renewing',
            refresh: 'renewing',
          },
        },
        gathering: {
          description: 'further changes may follow',
          tags: ['timed'],
          on: { due: 'renewing', refresh: 'renewing' },
        },
        renewing: {
          description: 'an earlier catalogue is offered while the upstream is listed',
          tags: ['listing'],
          on: {
            listed: LISTED,
            failed: [
              { guard: 'tooOld', target: '#mount.unknown.waiting', actions: 'countFailure' },
              { target: 'stale', actions: 'countFailure' },
            ],
            changed: 'overtaken',
          },
        },
        overtaken: {
          description: 'the upstream has changed while it is listed',
          tags: ['listing'],
          on: {
            listed: OVERTAKEN,
            failed: [
              { guard: 'tooOld', target: '#mount.unknown.waiting', actions: 'countFailure' },
              { target: 'stale', actions: 'countFailure' },
            ],
          },
        },
        stale: {
          description: 'the last listing failed',
          tags: ['timed'],
          on: { due: 'renewing', changed: { guard: 'inPace', target: 'renewing' }, refresh: 'renewing' },
        },
      },
    },
    closed: { type: 'final' },
  },
});

/** Half of the doubled delay, and up to as much again. */
function delayOf({ backOff: { fromMs, toMs }, failures }: MountContext, jitter: number): number {
  const delay = Math.min(toMs, fromMs * 2 ** Math.min(failures, 30));
  return Math.round(delay / 2 + (delay / 2) * jitter);
}

/** The listings that the pace allows after one that ended at a time. */
function allowedAfter({ pace, allowed }: MountContext, at: number): MountContext['allowed'] {
  const gained = Math.max(0, at - allowed.at) / pace.everyMs;
  return { listings: Math.max(0, Math.min(pace.listings, allowed.listings + gained) - 1), at };
}

/** Changes are gathered until the pace allows the next listing. */
function gatherMsOf({ pace, allowed, gatherMs }: MountContext): number {
  return Math.max(gatherMs, Math.ceil((1 - allowed.listings) * pace.everyMs));
}
