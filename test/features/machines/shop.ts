/** A server with one machine, and clients of several principals: what the tests of a machine's tools share. */
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { createServer, elicitWith, memory, type Server, type ServerOptions } from '../../../src/index.ts';
import { SimulatedClock, TestClient } from '../../../src/testing/testing.ts';

export const orderMachine = setup({
  types: {
    input: {} as { customer: string },
    context: {} as { customer: string; items: readonly { sku: string; quantity: number }[] },
    events: {} as
      | { type: 'add_item'; sku: string; quantity: number }
      | { type: 'pay' }
      | { type: 'sign' }
      | { type: 'cancel'; why?: string | undefined }
      | { type: 'internal' },
    output: {} as { paid: number },
  },
  actors: { askName: elicitWith(z.object({ name: z.string() })) },
  guards: { filled: ({ context }) => context.items.length > 0 },
}).createMachine({
  id: 'order',
  context: ({ input }) => ({ customer: input.customer, items: [] }),
  initial: 'cart',
  on: { internal: '.cancelled' },
  states: {
    cart: {
      on: {
        add_item: {
          actions: assign(({ context, event: { sku, quantity } }) => ({
            items: [...context.items, { sku, quantity }],
          })),
        },
        pay: { guard: 'filled', target: 'paid' },
        sign: 'signing',
        cancel: 'cancelled',
      },
      after: { 60000: 'cancelled' },
    },
    signing: {
      invoke: {
        id: 'name',
        src: 'askName',
        input: { message: 'Who signs?' },
        onDone: {
          target: 'cart',
          actions: assign(({ event }) =>
            event.output.status === 'accepted' ? { customer: event.output.content.name } : {},
          ),
        },
        onError: 'cart',
      },
      on: { cancel: 'cancelled' },
    },
    paid: { type: 'final' },
    cancelled: { type: 'final' },
  },
  output: ({ context }) => ({ paid: context.items.reduce((sum, { quantity }) => sum + quantity, 0) }),
});

export const orderOptions = {
  description: 'Something to buy.',
  input: z.object({ customer: z.string() }),
  events: {
    add_item: z.object({ sku: z.enum(['tea', 'cup']), quantity: z.number().int().default(1) }).describe('Adds to it'),
    pay: true,
    sign: true,
    cancel: z.object({ why: z.string().optional() }),
  },
  view: ({ context }: { readonly context: { readonly customer: string; readonly items: readonly unknown[] } }) => ({
    customer: context.customer,
    items: context.items,
  }),
} as const;

export interface Shop {
  readonly server: Server;
  readonly clock: SimulatedClock;
  /** A client of that principal. */
  client(principal?: string): TestClient;
}

/** Runs with a server that sells, and closes it. */
export async function withShop(
  run: (shop: Shop) => Promise<void>,
  options: Partial<ServerOptions> = {},
): Promise<void> {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'shop', version: '1.0.0', clock, log: () => {}, ...options });
  server.machine('order', orderMachine, orderOptions);
  const { transport, connect } = memory();
  await server.listen(transport);
  try {
    await run({
      server,
      clock,
      // The first picture loads the layout of charts, which takes seconds on a busy machine.
      client: (principal) =>
        new TestClient(connect(principal === undefined ? {} : { principal }), { deadlineMs: 30_000 }),
    });
  } finally {
    const closing = server.close();
    await clock.advance(5_000);
    await closing;
  }
}
