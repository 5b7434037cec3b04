/** The server of `troupe.mjs` as a TypeScript program. */
import { createServer, stdio } from 'troupe';

interface Echo {
  readonly text: string;
}

const server = createServer({ name: 'bench', version: '1.0.0' });
server.tool(
  'echo',
  {
    description: 'Answers the text',
    input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  async ({ text }): Promise<string> => text satisfies Echo['text'],
);
await server.listen(stdio());
