/** fastmcp (TypeScript): over stdio, over HTTP with sessions, and over HTTP without. */
import { createServer } from 'node:net';
import { FastMCP } from 'fastmcp';
import { z } from 'zod';
import { asked, DESCRIPTION, EACH_TURN, served, turn } from '../servers/telling.mjs';

const { way, names } = asked();
const quiet = () => {};
const logger = { debug: quiet, error: quiet, info: quiet, log: quiet, warn: quiet };
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

/** It does not say on which port it listens when it is given 0. */
async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

if (way === 'stdio') await server.start({ transportType: 'stdio' });
else {
  const port = await freePort();
  // What it has to say of itself is not for the line that says the url.
  console.log = console.info = () => {};
  await server.start({
    transportType: 'httpStream',
    httpStream: { host: '127.0.0.1', port, stateless: way === 'stateless' },
  });
  served(`http://127.0.0.1:${port}/mcp`);
}
