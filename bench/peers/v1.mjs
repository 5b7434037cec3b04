/** The official SDK, version 1: over stdio, over HTTP with sessions, and over HTTP without, each as its documentation shows it. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { asked, DESCRIPTION, EACH_TURN, turn } from '../servers/telling.mjs';
import { serve } from './serve/v1.mjs';

const { way, names } = asked();

function makeServer() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  const text = { description: DESCRIPTION, inputSchema: { text: z.string() } };
  for (const name of names) {
    if (name === 'count')
      server.registerTool(
        name,
        { description: DESCRIPTION, inputSchema: { n: z.number() } },
        async ({ n }, { _meta, sendNotification }) => {
          for (let progress = 1; progress <= n; progress += 1) {
            await sendNotification({
              method: 'notifications/progress',
              params: { progressToken: _meta?.progressToken, progress, total: n },
            });
            if (progress % EACH_TURN === 0) await turn();
          }
          return { content: [{ type: 'text', text: 'counted' }] };
        },
      );
    else
      server.registerTool(name, text, async ({ text }) => ({
        content: [{ type: 'text', text: name === 'size' ? String(text.length) : text }],
      }));
  }
  return server;
}

await serve(way, makeServer);
