/** Troupe as it is built, with the one tool that the benchmark calls. */
import { createServer, stdio } from 'troupe';

const server = createServer({ name: 'bench', version: '1.0.0' });
server.tool(
  'echo',
  {
    description: 'Answers the text',
    input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  async ({ text }) => text,
);
await server.listen(stdio());
