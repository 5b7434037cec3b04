/** The server that the recipes of this folder run: replace it by yours. */
import { createServer } from 'troupe';
import { z } from 'zod';

const server = createServer({
  name: 'orders',
  version: '1.0.0',
  // 20 s for running calls and 5 s in which balancers notice: the recipes kill the process after 30 s.
  limits: { graceMs: 20_000 },
  http: { allowedHosts: ['mcp.example.com'], drainDelayMs: 5_000 },
});

server.tool('order_status', { input: z.object({ id: z.string() }) }, ({ id }) => `order ${id}: shipped`);

export default server;
