/** An MCP server at /mcp of a server of `node:http` that serves other things too. */
import { createServer as createHttpServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer } from 'troupe';
import { z } from 'zod';

// It serves clients of this machine. For others, list the host names that they use: http: { allowedHosts:
// ['mcp.example.com'] }
const server = createServer({ name: 'in-node', version: '1.0.0' });

const input = z.object({ to: z.int().min(1).max(600) });
server.tool('count', { description: 'Counts, ten numbers a second.', input }, async ({ to }, { progress, signal }) => {
  for (let n = 1; n <= to; n += 1) {
    progress(n, to);
    await sleep(100, undefined, { signal });
  }
  return `Counted to ${to}.`;
});

const app = createHttpServer((request, response) => {
  const [path] = request.url?.split('?') ?? [];
  if (path === '/mcp') server.node(request, response);
  else if (path === '/health') response.end('ok');
  else response.writeHead(404).end();
});

app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = app.address();
  if (typeof address === 'object') console.error(`http://127.0.0.1:${address?.port}/mcp`);
});

process.once('SIGTERM', async () => {
  await server.close();
  app.close();
  // What clients leave open does not keep the process.
  setTimeout(() => process.exit(), 1_000).unref();
});
