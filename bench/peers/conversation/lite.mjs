/** A server of mcp-lite over HTTP with sessions. */
import { InMemoryClientRequestAdapter, InMemorySessionAdapter, McpServer, StreamableHttpTransport } from 'mcp-lite';
import { serve } from 'srvx';
import { z } from 'zod';
import { served } from '../../servers/telling.mjs';
import { FORM, text } from './script.mjs';

const server = new McpServer({ name: 'lite', version: '1.0.0', schemaAdapter: (schema) => z.toJSONSchema(schema) });
server.tool('add', {
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  handler: ({ a, b }) => text(a + b),
});
server.tool('count', {
  inputSchema: z.object({ n: z.number() }),
  async handler({ n }, { progress }) {
    for (let step = 1; step <= n; step += 1) await progress?.({ progress: step, total: n });
    return text('counted');
  },
});
server.tool('ask', {
  inputSchema: z.object({}),
  async handler(_args, { elicit }) {
    const { action, content } = await elicit({ message: FORM.message, schema: FORM.requestedSchema });
    return text(`${action} ${content?.size}`);
  },
});
server.resource('note://greeting', { name: 'greeting', mimeType: 'text/plain' }, ({ href }) => ({
  contents: [{ uri: href, text: 'good day' }],
}));
server.prompt('review', {
  arguments: z.object({ language: z.string() }),
  handler: ({ language }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Review ${language}` } }],
  }),
});

const transport = new StreamableHttpTransport({
  sessionAdapter: new InMemorySessionAdapter({ maxEventBufferSize: 1_024 }),
  clientRequestAdapter: new InMemoryClientRequestAdapter({ defaultTimeoutMs: 30_000 }),
});
const listening = serve({
  port: 0,
  hostname: '127.0.0.1',
  silent: true,
  gracefulShutdown: false,
  fetch: transport.bind(server),
});
await listening.ready();
served(new URL('/mcp', listening.url).href);
