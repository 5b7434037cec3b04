/** The handles of a simulated world: a machine that counts and waits, and what its clients may rely on of each instance. */
import { assign, setup } from 'xstate';
import { isObject } from '../../../src/core/protocol/json.ts';

/** Milliseconds that an instance stays armed: its timer is to fire, once, in whatever process there is then. */
const ARMED_MS = 700;

interface Tally {
  readonly canary: string;
  /** The nonces that were added, in order. */
  readonly seen: readonly string[];
  /** How often it was armed, and its timer has fired. */
  readonly armed: number;
  readonly fired: number;
}

export const tallyMachine = setup({
  types: {
    context: {} as Tally,
    input: {} as { readonly canary: string },
    events: {} as { readonly type: 'add'; readonly nonce: string } | { readonly type: 'arm' },
  },
}).createMachine({
  id: 'tally',
  context: ({ input }) => ({ canary: input.canary, seen: [], armed: 0, fired: 0 }),
  initial: 'resting',
  on: { add: { actions: assign({ seen: ({ context, event }) => [...context.seen, event.nonce] }) } },
  states: {
    resting: { on: { arm: { target: 'waiting', actions: assign({ armed: ({ context }) => context.armed + 1 }) } } },
    waiting: {
      after: { [ARMED_MS]: { target: 'resting', actions: assign({ fired: ({ context }) => context.fired + 1 }) } },
    },
  },
});

const STRING = { type: 'string' } as const;

/** How the server offers it. */
export const tallyOptions = {
  input: { type: 'object', properties: { canary: STRING }, required: ['canary'] },
  events: { add: { type: 'object', properties: { nonce: STRING }, required: ['nonce'] }, arm: true },
  view: ({ context }: { readonly context: Tally }) => context,
} as const;

/** An instance that a client was told of. */
export interface KnownHandle {
  readonly id: string;
  readonly owner: string;
  /** The number of the process that made it. */
  readonly generation: number;
  /** What was sent to it, and of that, what was acknowledged. */
  readonly sent: Set<string>;
  readonly added: Set<string>;
  armsSent: number;
  armsTaken: number;
  /** As it was told to be, by its version. */
  readonly told: Map<number, string>;
  waiting: boolean;
  ended: boolean;
}

export class HandleBook {
  readonly #violated: (what: string) => void;
  readonly handles = new Map<string, KnownHandle>();

  constructor(violated: (what: string) => void) {
    this.#violated = violated;
  }

  created(id: string, owner: string, generation: number): KnownHandle {
    if (this.handles.has(id)) this.#violated(`I4: the handle of ${owner} was handed out before`);
    const handle: KnownHandle = {
      id,
      owner,
      generation,
      sent: new Set(),
      added: new Set(),
      armsSent: 0,
      armsTaken: 0,
      told: new Map(),
      waiting: false,
      ended: false,
    };
    this.handles.set(id, handle);
    return handle;
  }

  /**
   * Somebody was shown an instance.
   *
   * @param before what had been acknowledged when it was asked for
   */
  looked(handle: KnownHandle, shown: Readonly<Record<string, unknown>>, before: ReadonlySet<string>): void {
    const { view, version, state } = shown;
    if (!isObject(view) || !Array.isArray(view.seen) || typeof version !== 'number')
      return this.#violated(`answers: a handle of ${handle.owner} is shown as ${JSON.stringify(shown)}`);
    const seen: readonly unknown[] = view.seen;
    for (const nonce of before)
      if (!seen.includes(nonce)) this.#violated(`I1: ${nonce} was added to a handle of ${handle.owner}, and is gone`);
    if (new Set(seen).size !== seen.length)
      this.#violated(`once: a handle of ${handle.owner} has counted twice: ${seen.join(', ')}`);
    for (const nonce of seen)
      if (!handle.sent.has(String(nonce)))
        this.#violated(`I4: a handle of ${handle.owner} has counted ${String(nonce)}, which nobody sent it`);
    const now = JSON.stringify([state, view]);
    const then = handle.told.get(version);
    if (then !== undefined && then !== now)
      this.#violated(`I2: version ${version} of a handle of ${handle.owner} was ${then}, and is ${now}`);
    handle.told.set(version, now);
    const { armed, fired } = view;
    if (typeof armed !== 'number' || typeof fired !== 'number') return;
    handle.waiting = state === 'waiting';
    if (armed - fired !== (handle.waiting ? 1 : 0))
      this.#violated(`once: a handle of ${handle.owner} was armed ${armed} times, and fired ${fired} times`);
    if (armed > handle.armsSent)
      this.#violated(`once: a handle of ${handle.owner} was armed ${armed} times of ${handle.armsSent}`);
    if (armed < handle.armsTaken)
      this.#violated(`I1: a handle of ${handle.owner} was armed ${handle.armsTaken} times, and shows ${armed}`);
  }

  /** Instances whose timers have yet to fire, as far as anybody knows. */
  waiting(): readonly KnownHandle[] {
    return [...this.handles.values()].filter(({ waiting, ended }) => waiting && !ended);
  }
}
