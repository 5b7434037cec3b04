/** Machines that tell each other, for the tests of messages: an order that reserves goods, and a stock that counts and answers. */
import { assign, setup } from 'xstate';
import type { MachineKind } from '../../../../src/features/machines/machine-definition.ts';
import { tell } from '../../../../src/features/machines/messages/tell.ts';

interface Line {
  readonly n: number;
}

type StockEvent = { type: 'reserve'; n: number } | { type: 'close' } | { type: 'end' } | { type: 'fail' };

/** Takes reservations in the order in which they come, until it is closed. */
export const stockMachine = setup({
  types: { context: {} as { taken: readonly number[] }, events: {} as StockEvent },
}).createMachine({
  id: 'stock',
  context: { taken: [] },
  initial: 'open',
  states: {
    open: {
      on: {
        reserve: { actions: assign({ taken: ({ context, event }) => [...context.taken, event.n] }) },
        close: 'closed',
        end: 'ended',
        fail: {
          actions: assign(() => {
            throw new Error('boom');
          }),
        },
      },
    },
    closed: { on: { end: 'ended' } },
    ended: { type: 'final' },
  },
});

interface Order {
  readonly stock: string;
  readonly failed: readonly string[];
  readonly ordered: number;
}

type OrderEvent =
  | { type: 'order'; n: number }
  | { type: 'many'; count: number }
  | { type: 'bad'; event: unknown }
  | { type: 'to'; machine: string; key: string }
  | { type: 'throw'; n: number }
  | { type: 'finish'; n: number }
  | { type: 'tell.failed'; reason: string };

export const orderMachine = setup({
  types: { context: {} as Order, events: {} as OrderEvent, input: {} as { stock?: string } },
  actions: {
    reserve: tell(
      'stock',
      ({ context }) => context.stock,
      ({ event }) => ({ type: 'reserve', n: (event as Line).n }),
    ),
    explode: () => {
      throw new Error('after the commit');
    },
  },
}).createMachine({
  id: 'order',
  context: ({ input }) => ({ stock: input.stock ?? 'tea', failed: [], ordered: 0 }),
  initial: 'open',
  states: {
    open: {
      on: {
        order: { actions: ['reserve', assign({ ordered: ({ context }) => context.ordered + 1 })] },
        many: {
          actions: Array.from({ length: 40 }, (_, at) =>
            tell<Order, { type: 'many'; count: number }, undefined, OrderEvent>(
              'stock',
              ({ context }) => context.stock,
              ({ event }) => ({ type: 'reserve', n: at, more: 'x'.repeat(event.count) }),
            ),
          ),
        },
        bad: {
          actions: tell(
            'stock',
            ({ context }) => context.stock,
            ({ event }) => event.event as { type: string },
          ),
        },
        to: { actions: tell('lost', ({ event }) => event.key, { type: 'reserve', n: 0 }) },
        throw: { actions: ['reserve', 'explode'] },
        finish: { target: 'done', actions: 'reserve' },
        'tell.failed': { actions: assign({ failed: ({ context, event }) => [...context.failed, event.reason] }) },
      },
    },
    done: { type: 'final' },
  },
});

export const stockKind = (more: Partial<MachineKind> = {}): MachineKind => ({
  ...{ name: 'stock', machine: stockMachine, version: '1', events: ['reserve', 'close', 'end', 'fail'] },
  view: (snapshot) => snapshot.context,
  ...more,
});

export const orderKind = (more: Partial<MachineKind> = {}): MachineKind => ({
  ...{ name: 'order', machine: orderMachine, version: '1' },
  ...{ events: ['order', 'many', 'bad', 'to', 'throw', 'finish'], view: (snapshot) => snapshot.context },
  ...more,
});

/** A machine that answers each event of another of its kind with as many events. */
export function echoKind(times: number): MachineKind {
  const machine = setup({
    types: {
      context: {} as { seen: number; other: string; failed: number },
      events: {} as { type: 'meet'; other: string } | { type: 'echo' } | { type: 'tell.failed' },
    },
    actions: {
      answer: tell('echo', ({ context }) => context.other, { type: 'echo' }),
    },
  }).createMachine({
    context: { seen: 0, other: '', failed: 0 },
    on: {
      meet: { actions: assign({ other: ({ event }) => event.other }) },
      echo: {
        actions: [
          assign({ seen: ({ context }) => context.seen + 1 }),
          ...Array.from({ length: times }, () => 'answer' as const),
        ],
      },
      'tell.failed': { actions: assign({ failed: ({ context }) => context.failed + 1 }) },
    },
  });
  return { name: 'echo', machine, version: '1', events: ['meet', 'echo'], view: (snapshot) => snapshot.context };
}
