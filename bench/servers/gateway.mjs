/** A gateway of Troupe over HTTP, in front of the server over stdio that its argument names; "direct" serves the same tool without one. */
import { createServer, http } from 'troupe';

const server = createServer({ name: 'bench', version: '1.0.0' });
const upstream = process.argv[2] ?? '';
if (upstream === 'direct')
  server.tool(
    'echo',
    {
      description: 'Answers the text',
      input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    },
    async ({ text }) => text,
  );
else await server.mount('up', { command: process.execPath, args: [upstream] }, { prefix: false });
const transport = http({ port: Number(process.env.PORT ?? 0) });
await server.listen(transport);
