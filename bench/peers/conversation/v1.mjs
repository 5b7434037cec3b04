/** A server of the official SDK, version 1: over stdio, and over HTTP with sessions. */
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { asked } from '../../servers/telling.mjs';
import { serve } from '../serve/v1.mjs';
import { aborted, FORM, SAMPLING, seen, text } from './script.mjs';

function makeServer() {
  const server = new McpServer({ name: 'v1', version: '1.0.0' }, { instructions: 'Ask for tea.' });
  server.registerTool(
    'add',
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    ({ a, b }) => ({ ...text(a + b), structuredContent: { sum: a + b } }),
  );
  server.registerTool('count', { inputSchema: { n: z.number() } }, async ({ n }, { _meta, sendNotification }) => {
    for (let progress = 1; progress <= n; progress += 1)
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken: _meta?.progressToken, progress, total: n },
      });
    return text('counted');
  });
  server.registerTool('ask', {}, async ({ sendRequest }) => {
    const { action, content } = await sendRequest({ method: 'elicitation/create', params: FORM }, ElicitResultSchema);
    return text(`${action} ${content?.size}`);
  });
  server.registerTool('sample', {}, async ({ sendRequest }) => {
    const { content } = await sendRequest(
      { method: 'sampling/createMessage', params: SAMPLING },
      CreateMessageResultSchema,
    );
    return text(content.text);
  });
  server.registerTool('roots', {}, async ({ sendRequest }) => {
    const { roots } = await sendRequest({ method: 'roots/list' }, ListRootsResultSchema);
    return text(roots.map(({ uri }) => uri).join());
  });
  server.registerTool('wait', {}, ({ signal }) => aborted(signal));
  server.registerTool('cancelled', {}, () => text(seen.cancelled));
  server.registerTool('fail', {}, () => {
    throw new Error('no tea');
  });
  server.registerTool('grow', {}, () => {
    server.registerTool('grown', {}, () => text('grown'));
    return text('grows');
  });
  server.registerResource('greeting', 'note://greeting', { mimeType: 'text/plain' }, ({ href }) => ({
    contents: [{ uri: href, text: 'good day' }],
  }));
  server.registerResource(
    'notes',
    new ResourceTemplate('note://notes/{id}', {
      list: undefined,
      complete: { id: (value) => ['12', '13', '21'].filter((id) => id.startsWith(value)) },
    }),
    {},
    ({ href }, { id }) => ({ contents: [{ uri: href, text: `note ${id}` }] }),
  );
  server.registerPrompt(
    'review',
    {
      argsSchema: {
        language: completable(z.string(), (value) => ['perl', 'php'].filter((each) => each.startsWith(value))),
      },
    },
    ({ language }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Review ${language}` } }] }),
  );
  return server;
}

await serve(asked().way, makeServer);
