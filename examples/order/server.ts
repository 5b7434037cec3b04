/** Sells tea: a statechart as a set of tools. Each order has a handle, and survives the process if there is a store. */
import { createServer, type Server, sqlite } from 'troupe';
import * as z from 'zod';
import { GERMAN } from './german.ts';
import { orderMachine, SKU, totalOf } from './order.ts';

/** The store for orders. Without it, they are in memory. */
const file = process.env.ORDER_STORE;

const server: Server = createServer({
  name: 'shop',
  version: '1.0.0',
  ...(file === undefined ? {} : { store: sqlite(file) }),
});

server.machine('order', orderMachine, {
  description: 'An order in a tea shop.',
  input: z.object({ customer: z.string().describe('Who buys') }),
  events: {
    add_item: z.object({ sku: SKU, quantity: z.number().int().min(1).default(1) }),
    checkout: true,
    cancel: z.object({ reason: z.string().optional() }),
  },
  view: ({ context }) => ({ ...context, total: totalOf(context) }),
  schemas: {
    view: z.object({
      customer: z.string(),
      items: z.array(z.object({ sku: SKU, quantity: z.number() })),
      payment: z.string().optional(),
      total: z.number(),
    }),
    output: z.object({ payment: z.string().optional(), total: z.number() }),
  },
  annotations: { cancel: { destructiveHint: true } },
  app: {
    hide: ['payment'],
    labels: {
      states: { cart: 'Basket', confirming: 'Your consent', paying: 'Payment' },
      events: { add_item: 'Add to basket', checkout: 'Check out', cancel: 'Cancel order' },
      delays: { patience: 'Time to decide', packing: 'Time to pack' },
      members: { sku: 'Article', agreed: 'Charge my card' },
      reasons: { filled: 'The basket is empty.' },
    },
    translations: { de: GERMAN },
  },
});

export default server;
