/** Serves the everything server over HTTP on loopback: at port 3000, at `--port N`, or with `--port 0` at any free one. */
import { parseArgs } from 'node:util';
import { http } from 'troupe';
import server from './server.ts';

const { values } = parseArgs({ options: { port: { type: 'string', default: '3000' } } });

// The process does nothing else, so what a tool throws too late need not end it.
const transport = http({ port: Number(values.port), ownsProcess: true });
await server.listen(transport);
console.error(`The everything server is at ${transport.url}`);

// The first signal lets finish what runs, the second ends it all.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => server.close(`${signal} came`));
