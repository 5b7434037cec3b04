/** A server of the official SDK, version 2: both eras over stdio and HTTP; there the legacy era has no sessions. */
import { completable, inputRequired, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { asked } from '../../servers/telling.mjs';
import { serve } from '../serve/v2.mjs';
import { aborted, FORM, SAMPLING, seen, text } from './script.mjs';

let grown = false;
let changed = () => {};

function makeServer() {
  const server = new McpServer({ name: 'v2', version: '2.0.0' }, { instructions: 'Ask for tea.' });
  server.registerTool(
    'add',
    { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ ...text(a + b), structuredContent: { sum: a + b } }),
  );
  server.registerTool('count', { inputSchema: z.object({ n: z.number() }) }, async ({ n }, { mcpReq }) => {
    for (let progress = 1; progress <= n; progress += 1)
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: mcpReq._meta?.progressToken, progress, total: n },
      });
    return text('counted');
  });
  server.registerTool('ask', {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.size;
    if (answer) return text(`${answer.action} ${answer.content?.size}`);
    return inputRequired({ inputRequests: { size: inputRequired.elicit(FORM) }, requestState: 'asked' });
  });
  server.registerTool('sample', {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.tea;
    if (answer) return text(answer.content.text);
    return inputRequired({ inputRequests: { tea: inputRequired.createMessage(SAMPLING) } });
  });
  server.registerTool('roots', {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.roots;
    if (answer) return text(answer.roots.map(({ uri }) => uri).join());
    return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  });
  server.registerTool('wait', {}, ({ mcpReq }) => aborted(mcpReq.signal));
  server.registerTool('cancelled', {}, () => text(seen.cancelled));
  server.registerTool('fail', {}, () => {
    throw new Error('no tea');
  });
  const grow = () => server.registerTool('grown', {}, () => text('grown'));
  if (grown) grow();
  server.registerTool('grow', {}, () => {
    grown = true;
    grow();
    changed();
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
      argsSchema: z.object({
        language: completable(z.string(), (value) => ['perl', 'php'].filter((each) => each.startsWith(value))),
      }),
    },
    ({ language }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Review ${language}` } }] }),
  );
  return server;
}

changed = serve(asked().way, makeServer);
