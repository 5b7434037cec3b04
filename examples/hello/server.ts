/** The smallest useful server. */
import { createServer, stdio } from 'troupe';
import { z } from 'zod';

const server = createServer({ name: 'greeter', version: '1.0.0' });

server.tool(
  'greet',
  { description: 'Greets someone by name', input: z.object({ name: z.string() }) },
  ({ name }) => `Hello, ${name}!`,
);

await server.listen(stdio());
