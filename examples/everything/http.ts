/** Serves the everything server over HTTP on loopback: at port 3000, at `--port N`, or with `--port 0` at any free one. */
import { parseArgs } from 'node:util';
import { http } from 'troupe';
import { addScopes } from './scopes.ts';
import server from './server.ts';

const { values } = parseArgs({ options: { port: { type: 'string', default: '3000' } } });

const auth = process.env.EVERYTHING_SCOPES === '1' ? addScopes(server) : undefined;

// The process serves nothing else, so a late exception of a tool need not end it.
const transport = http({ port: Number(values.port), ownsProcess: true, auth });
await server.listen(transport);
console.error(`The everything server is at ${transport.url}`);

// The first signal lets running calls finish, the second ends the process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => server.close(`${signal} came`));
