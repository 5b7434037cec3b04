/** Refunds an order: it asks, pays, and asks again. One handler for every client, and it pays exactly once. */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, type Server } from 'troupe';
import * as z from 'zod';

/** The record of payments. */
const ledger = process.env.REFUND_LEDGER;
/** Delay of the order system. */
const lookUpMs = Number(process.env.REFUND_LOOK_UP_MS ?? 0);
/** Secrets that all processes of this server share, so that a question survives a restart. */
const keys = process.env.REFUND_KEYS?.split(',');

const SURE = z.object({ sure: z.boolean().describe('Pay it back') });
const RECEIPT = z.object({ email: z.email().describe('Where the receipt goes') });

const server: Server = createServer({ name: 'refunds', version: '1.0.0', ...(keys ? { keys } : {}) });

server.tool(
  'refund',
  {
    description: 'Refunds an order after the buyer has agreed.',
    input: z.object({ order: z.string() }),
    task: 'allowed',
  },
  async ({ order }, ctx) => {
    const { amount } = await ctx.step('look up', () => lookUp(order));

    const sure = await ctx.elicit({ message: `Pay ${amount} back for order ${order}?`, schema: SURE });
    if (sure.status !== 'accepted' || !sure.content.sure) return 'Nothing was paid.';

    // A payment must not happen twice, so it is a step: its result is recorded before the next question.
    const { payment } = await ctx.step('pay', () => pay(order, amount));

    const receipt = await ctx.elicit({ message: `Payment ${payment} is on its way. Your address?`, schema: RECEIPT });
    const sent = receipt.status === 'accepted' ? `; the receipt goes to ${receipt.content.email}` : '';
    return `Paid ${amount} back for order ${order}, payment ${payment}${sent}.`;
  },
);

async function lookUp(_order: string): Promise<{ readonly amount: number }> {
  await sleep(lookUpMs);
  return { amount: 42 };
}

function pay(order: string, amount: number): { readonly payment: string } {
  if (ledger !== undefined) appendFileSync(ledger, `${order} ${amount}\n`);
  return { payment: `p-${order}` };
}

export default server;
