/** The official SDK, version 2: both eras over stdio; over HTTP the modern one, and the older ones without sessions. */
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { asked, DESCRIPTION, EACH_TURN, turn } from '../servers/telling.mjs';
import { serve } from './serve/v2.mjs';

const { way, names } = asked();

function makeServer() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  for (const name of names) {
    if (name === 'count')
      server.registerTool(
        name,
        { description: DESCRIPTION, inputSchema: z.object({ n: z.number() }) },
        async ({ n }, { mcpReq }) => {
          for (let progress = 1; progress <= n; progress += 1) {
            await mcpReq.notify({
              method: 'notifications/progress',
              params: { progressToken: mcpReq._meta?.progressToken, progress, total: n },
            });
            if (progress % EACH_TURN === 0) await turn();
          }
          return { content: [{ type: 'text', text: 'counted' }] };
        },
      );
    else
      server.registerTool(
        name,
        { description: DESCRIPTION, inputSchema: z.object({ text: z.string() }) },
        async ({ text }) => ({ content: [{ type: 'text', text: name === 'size' ? String(text.length) : text }] }),
      );
  }
  return server;
}

serve(way, makeServer);
