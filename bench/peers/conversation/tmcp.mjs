/** A server of tmcp: both eras over stdio and over HTTP, there with sessions for the legacy one. */
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { McpServer } from 'tmcp';
import { z } from 'zod';
import { asked } from '../../servers/telling.mjs';
import { serve } from '../serve/tmcp.mjs';
import { SAMPLING, text } from './script.mjs';

const server = new McpServer(
  { name: 'tmcp', version: '1.0.0', description: 'a peer' },
  {
    adapter: new ZodJsonSchemaAdapter(),
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      completions: {},
    },
  },
);
server.tool(
  {
    name: 'add',
    description: 'Adds',
    schema: z.object({ a: z.number(), b: z.number() }),
    outputSchema: z.object({ sum: z.number() }),
  },
  ({ a, b }) => ({ ...text(a + b), structuredContent: { sum: a + b } }),
);
server.tool({ name: 'count', description: 'Counts', schema: z.object({ n: z.number() }) }, ({ n }) => {
  for (let progress = 1; progress <= n; progress += 1) server.progress(progress, n);
  return text('counted');
});
server.tool({ name: 'ask', description: 'Asks', replayable: true }, async () => {
  const { action, content } = await server.elicitation(
    'Which size?',
    z.object({ size: z.enum(['small', 'large']).default('large') }),
  );
  return text(`${action} ${content?.size}`);
});
server.tool({ name: 'sample', description: 'Samples', replayable: true }, async () => {
  const { content } = await server.message(SAMPLING);
  return text(content.text);
});
server.tool({ name: 'grow', description: 'Grows' }, () => {
  server.tool({ name: 'grown', description: 'Grown' }, () => text('grown'));
  return text('grows');
});
server.resource({ name: 'greeting', description: 'A greeting', uri: 'note://greeting' }, (uri) => ({
  contents: [{ uri, text: 'good day' }],
}));
server.template(
  {
    name: 'notes',
    description: 'Notes',
    uri: 'note://notes/{id}',
    complete: {
      id: (value) => ({ completion: { values: ['12', '13', '21'].filter((id) => id.startsWith(value)) } }),
    },
  },
  (uri, { id }) => ({ contents: [{ uri, text: `note ${id}` }] }),
);
server.prompt(
  {
    name: 'review',
    description: 'Reviews',
    schema: z.object({ language: z.string() }),
    complete: {
      language: (value) => ({ completion: { values: ['perl', 'php'].filter((each) => each.startsWith(value)) } }),
    },
  },
  ({ language }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Review ${language}` } }] }),
);

await serve(asked().way, server);
