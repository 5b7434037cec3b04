/** tmcp: both eras over stdio and over HTTP, there with sessions for the older one. */
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { HttpTransport } from '@tmcp/transport-http';
import { StdioTransport } from '@tmcp/transport-stdio';
import { serve } from 'srvx';
import { McpServer } from 'tmcp';
import { z } from 'zod';
import { asked, DESCRIPTION, EACH_TURN, served, turn } from '../servers/telling.mjs';

const { way, names } = asked();
const server = new McpServer(
  { name: 'bench', version: '1.0.0', description: 'bench' },
  { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: { listChanged: true } } },
);
for (const name of names) {
  if (name === 'count')
    server.tool({ name, description: DESCRIPTION, schema: z.object({ n: z.number() }) }, async ({ n }) => {
      for (let done = 1; done <= n; done += 1) {
        server.progress(done, n);
        if (done % EACH_TURN === 0) await turn();
      }
      return { content: [{ type: 'text', text: 'counted' }] };
    });
  else
    server.tool({ name, description: DESCRIPTION, schema: z.object({ text: z.string() }) }, async ({ text }) => ({
      content: [{ type: 'text', text: name === 'size' ? String(text.length) : text }],
    }));
}

if (way === 'stdio') new StdioTransport(server).listen();
else {
  const transport = new HttpTransport(server, { path: '/mcp' });
  const listening = serve({
    port: 0,
    hostname: '127.0.0.1',
    silent: true,
    gracefulShutdown: false,
    fetch: async (request) => (await transport.respond(request)) ?? new Response(null, { status: 404 }),
  });
  await listening.ready();
  served(new URL('/mcp', listening.url).href);
}
