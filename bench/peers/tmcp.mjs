/** tmcp: both eras over stdio and over HTTP, there with sessions for the older one. */
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { McpServer } from 'tmcp';
import { z } from 'zod';
import { asked, DESCRIPTION, EACH_TURN, turn } from '../servers/telling.mjs';
import { serve } from './serve/tmcp.mjs';

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

await serve(way, server);
