/** An MCP server at /mcp of a Hono application, which runs wherever the web's Request and Response are known; here on Node. */
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createServer } from 'troupe';
import { z } from 'zod';

// It serves clients of this machine. For others, list the host names that they use: http: { allowedHosts:
// ['mcp.example.com'] }
const server = createServer({ name: 'in-hono', version: '1.0.0' });

const input = z.object({ to: z.int().min(1).max(600) });
server.tool('count', { description: 'Counts, ten numbers a second.', input }, async ({ to }, { progress, signal }) => {
  for (let n = 1; n <= to; n += 1) {
    progress(n, to);
    await sleep(100, undefined, { signal });
  }
  return `Counted to ${to}.`;
});

const app = new Hono();
app.all('/mcp', (context) => server.fetch(context.req.raw));
app.get('/health', (context) => context.text('ok'));

const options = { fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' };
const listening = serve(options, ({ port }) => console.error(`http://127.0.0.1:${port}/mcp`));

process.once('SIGTERM', async () => {
  await server.close();
  listening.close();
  // What clients leave open does not keep the process.
  setTimeout(() => process.exit(), 1_000).unref();
});
