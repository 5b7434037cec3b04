/** A server of FastMCP (TypeScript): over stdio, and over HTTP with sessions. */
import { createServer } from 'node:net';
import { FastMCP } from 'fastmcp';
import { z } from 'zod';
import { FORM, SAMPLING, served, way } from './serving.mjs';

const quiet = () => {};
const logger = { debug: quiet, error: quiet, info: quiet, log: quiet, warn: quiet };
const server = new FastMCP({ name: 'fastmcp', version: '1.0.0', logger, instructions: 'Ask for tea.' });
/** The only session: tools reach their client through it, once FastMCP has listed the client's roots. */
const connected = new Promise((resolve) => {
  server.on('connect', ({ session }) => resolve(session));
});
async function ready() {
  const session = await connected;
  await session.waitForReady();
  return session;
}
server.addTool({
  name: 'add',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
});
server.addTool({
  name: 'count',
  parameters: z.object({ n: z.number() }),
  async execute({ n }, { reportProgress }) {
    for (let progress = 1; progress <= n; progress += 1) await reportProgress({ progress, total: n });
    return 'counted';
  },
});
server.addTool({
  name: 'ask',
  async execute(_args, { elicit }) {
    const { action, content } = await elicit(FORM);
    return `${action} ${content?.size}`;
  },
});
server.addTool({
  name: 'sample',
  async execute() {
    const { content } = await (await ready()).requestSampling(SAMPLING);
    return content.text;
  },
});
server.addTool({ name: 'roots', execute: async () => (await ready()).roots.map(({ uri }) => uri).join() });
server.addTool({
  name: 'grow',
  async execute() {
    server.addTool({ name: 'grown', execute: async () => 'grown' });
    return 'grows';
  },
});
server.addResource({
  uri: 'note://greeting',
  name: 'greeting',
  mimeType: 'text/plain',
  load: async () => ({ text: 'good day' }),
});
server.addResourceTemplate({
  uriTemplate: 'note://notes/{id}',
  name: 'notes',
  mimeType: 'text/plain',
  arguments: [
    { name: 'id', complete: async (value) => ({ values: ['12', '13', '21'].filter((id) => id.startsWith(value)) }) },
  ],
  load: async ({ id }) => ({ text: `note ${id}` }),
});
server.addPrompt({
  name: 'review',
  arguments: [
    {
      name: 'language',
      required: true,
      complete: async (value) => ({ values: ['perl', 'php'].filter((each) => each.startsWith(value)) }),
    },
  ],
  load: async ({ language }) => `Review ${language}`,
});

/** FastMCP does not report the port that it chose itself. */
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
  console.log = console.info = quiet;
  await server.start({ transportType: 'httpStream', httpStream: { host: '127.0.0.1', port } });
  served(`http://127.0.0.1:${port}/mcp`);
}
