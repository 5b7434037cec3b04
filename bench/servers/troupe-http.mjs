/** Troupe over HTTP as it is built, with the one tool that the benchmark calls. */
import { createServer, http } from 'troupe';
import './cpu.mjs';

const server = createServer({ name: 'bench', version: '1.0.0' });
server.tool(
  'echo',
  {
    description: 'Answers the text',
    input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  async ({ text }) => text,
);
const transport = http({ port: 0 });
await server.listen(transport);
process.stdout.write(`${transport.url}\n`);
process.stdin.resume().once('end', () => void server.close().then(() => process.exit()));
