/** A gateway over an API and two servers, whose tools a model calls in scripts: it lists three tools, however many there are behind them. */
import { createServer, openapi, type Server } from 'troupe';
import * as z from 'zod';
import { effect, startShop } from './shop.ts';

const DAYS: Readonly<Record<string, number>> = { lamp: 2, desk: 21, sofa: 60 };

function stock(): Server {
  const server = createServer({ name: 'stock', version: '1.0.0' });
  server.tool(
    'days_until',
    {
      description: 'Says in how many days a product can be sent.',
      input: z.object({ product: z.string() }),
      output: z.object({ days: z.number() }),
      annotations: { readOnlyHint: true },
    },
    ({ product }) => ({ days: DAYS[product] ?? 0 }),
  );
  return server;
}

function mail(): Server {
  const server = createServer({ name: 'mail', version: '1.0.0' });
  const input = z.object({ to: z.string(), text: z.string() });
  server.tool('send', { description: 'Sends a message.', input }, ({ to, text }) => effect(`wrote to ${to}: ${text}`));
  return server;
}

const server = createServer({
  name: 'office',
  version: '1.0.0',
  // A call waits so long for a script that sleeps. Then it returns, and the script continues.
  code: { waitMs: Number(process.env.OFFICE_WAIT_MS ?? 20_000) },
});
// Both servers are ours: what they say of their tools is believed.
await server.mount('stock', stock(), { expose: 'code', trust: true });
await server.mount('mail', mail(), { expose: 'code', trust: true });
// Its address is another one with each start, which pins would report as a change.
await server.mount('shop', openapi(await startShop()), { expose: 'code', pins: 'off' });

export default server;
