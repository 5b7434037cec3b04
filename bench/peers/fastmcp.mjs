/** fastmcp (TypeScript): over stdio, over HTTP with sessions, and over HTTP without. */
import { FastMCP } from 'fastmcp';
import { z } from 'zod';
import { asked, DESCRIPTION, EACH_TURN, turn } from '../servers/telling.mjs';
import { logger, serve } from './serve/fastmcp.mjs';

const { way, names } = asked();
const server = new FastMCP({ name: 'bench', version: '1.0.0', logger });
for (const name of names) {
  if (name === 'count')
    server.addTool({
      name,
      description: DESCRIPTION,
      parameters: z.object({ n: z.number() }),
      async execute({ n }, { reportProgress }) {
        for (let progress = 1; progress <= n; progress += 1) {
          await reportProgress({ progress, total: n });
          if (progress % EACH_TURN === 0) await turn();
        }
        return 'counted';
      },
    });
  else
    server.addTool({
      name,
      description: DESCRIPTION,
      parameters: z.object({ text: z.string() }),
      execute: async ({ text }) => (name === 'size' ? String(text.length) : text),
    });
}

await serve(way, server);
