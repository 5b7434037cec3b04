/** An MCP server at /mcp of a Fastify application. */
import { setTimeout as sleep } from 'node:timers/promises';
import fastify from 'fastify';
import { createServer } from 'troupe';
import { z } from 'zod';

// It serves clients of this machine. For others, list the host names that they use: http: { allowedHosts:
// ['mcp.example.com'] }
const server = createServer({ name: 'in-fastify', version: '1.0.0' });

const input = z.object({ to: z.int().min(1).max(600) });
server.tool('count', { description: 'Counts, ten numbers a second.', input }, async ({ to }, { progress, signal }) => {
  for (let n = 1; n <= to; n += 1) {
    progress(n, to);
    await sleep(100, undefined, { signal });
  }
  return `Counted to ${to}.`;
});

const app = fastify();
app.get('/health', () => 'ok');
app.register(async (mcp) => {
  // Fastify parses no body here: the server reads it itself.
  mcp.removeAllContentTypeParsers();
  mcp.addContentTypeParser('*', (_request, _payload, done) => done(null));
  mcp.all('/mcp', (request, reply) => {
    reply.hijack();
    server.node(request.raw, reply.raw);
  });
});

console.error(`${await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })}/mcp`);

process.once('SIGTERM', async () => {
  await server.close();
  // What clients leave open does not keep the process.
  setTimeout(() => process.exit(), 1_000).unref();
  await app.close();
});
