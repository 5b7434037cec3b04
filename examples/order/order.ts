/**
 * A checkout as a statechart: a cart with a time limit, a question, a payment that happens once, and a delayed
 * shipment.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { elicitWith, fromSteps } from 'troupe';
import { assign, setup } from 'xstate';
import * as z from 'zod';

/** The record of charges: the bank in this example. */
const ledger = process.env.ORDER_LEDGER;
/** Time limits: of a cart without activity, and of a parcel before shipment. */
const patienceMs = Number(process.env.ORDER_PATIENCE_MS ?? 1_800_000);
const packingMs = Number(process.env.ORDER_PACKING_MS ?? 60_000);

const PRICES = { tea: 4, cup: 9, kettle: 30 } as const;

export const SKU = z.enum(['tea', 'cup', 'kettle']);
const AGREED = z.object({ agreed: z.boolean().describe('Charge my card') });

type Item = { readonly sku: z.infer<typeof SKU>; readonly quantity: number };
interface Order {
  readonly customer: string;
  readonly items: readonly Item[];
  readonly payment?: string;
}

export const orderMachine = setup({
  types: {
    input: {} as { customer: string },
    context: {} as Order,
    events: {} as
      | ({ type: 'add_item' } & Item)
      | { type: 'checkout' }
      | { type: 'cancel'; reason?: string | undefined },
    output: {} as { payment: string | undefined; total: number },
  },
  actors: {
    askConsent: elicitWith(AGREED),
    charge: fromSteps<{ customer: string; total: number }, string>(({ input, step, key }) =>
      // The key identifies the charge: if this process dies before the step is recorded, the same charge is sent again.
      step('charge', () => charge(key, input.customer, input.total)),
    ),
  },
  guards: { filled: ({ context }) => context.items.length > 0 },
  delays: { patience: patienceMs, packing: packingMs },
}).createMachine({
  id: 'order',
  context: ({ input }) => ({ customer: input.customer, items: [] }),
  initial: 'cart',
  states: {
    cart: {
      on: {
        add_item: {
          description: 'Adds an item to the cart',
          actions: assign(({ context, event: { sku, quantity } }) => ({
            items: [...context.items, { sku, quantity }],
          })),
        },
        checkout: {
          description: 'Asks the customer for consent, then charges them',
          guard: 'filled',
          target: 'confirming',
        },
        cancel: { target: 'cancelled' },
      },
      after: { patience: 'cancelled' },
    },
    confirming: {
      invoke: {
        id: 'consent',
        src: 'askConsent',
        input: ({ context }) => ({ message: `Charge ${context.customer} ${totalOf(context)}?` }),
        onDone: [
          {
            guard: ({ event }) => event.output.status === 'accepted' && event.output.content.agreed,
            target: 'paying',
          },
          { target: 'cart' },
        ],
        // A client that cannot ask its user cannot pay.
        onError: 'cart',
      },
      on: { cancel: { target: 'cancelled' } },
      after: { patience: 'cancelled' },
    },
    paying: {
      invoke: {
        id: 'charge',
        src: 'charge',
        input: ({ context }) => ({ customer: context.customer, total: totalOf(context) }),
        onDone: { target: 'packing', actions: assign({ payment: ({ event }) => event.output }) },
        onError: 'cart',
      },
    },
    packing: { after: { packing: 'shipped' } },
    shipped: { type: 'final' },
    cancelled: { type: 'final' },
  },
  output: ({ context }) => ({ payment: context.payment, total: totalOf(context) }),
});

export function totalOf({ items }: Order): number {
  return items.reduce((total, { sku, quantity }) => total + PRICES[sku] * quantity, 0);
}

/** A bank that accepts each key once. */
function charge(key: string, customer: string, total: number): string {
  if (ledger === undefined) return key;
  const known = existsSync(ledger) ? readFileSync(ledger, 'utf8') : '';
  if (!known.split('\n').some((line) => line.startsWith(`${key} `)))
    appendFileSync(ledger, `${key} ${customer} ${total}\n`);
  return key;
}
