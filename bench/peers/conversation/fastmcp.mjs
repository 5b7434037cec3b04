/** A server of FastMCP (TypeScript): over stdio, and over HTTP with sessions. */
import { FastMCP } from 'fastmcp';
import { z } from 'zod';
import { asked } from '../../servers/telling.mjs';
import { logger, serve } from '../serve/fastmcp.mjs';
import { FORM, SAMPLING } from './script.mjs';

const server = new FastMCP({ name: 'fastmcp', version: '1.0.0', logger, instructions: 'Ask for tea.' });
const connected = new Promise((resolve) => {
  server.on('connect', ({ session }) => resolve(session));
});
/**
 * The session of a call, once FastMCP has listed its client's roots: tools reach their client through it. Over stdio there is one
 * session, without an id; over HTTP, that of the first client may be one that only lists.
 */
async function ready({ sessionId }) {
  const first = await connected;
  const session = server.sessions.find((each) => each.sessionId === sessionId) ?? first;
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
  async execute(_args, call) {
    const { content } = await (await ready(call)).requestSampling(SAMPLING);
    return content.text;
  },
});
server.addTool({
  name: 'roots',
  execute: async (_args, call) => (await ready(call)).roots.map(({ uri }) => uri).join(),
});
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

await serve(asked().way, server);
