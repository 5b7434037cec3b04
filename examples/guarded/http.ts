/**
 * Serves the guarded server over HTTP, with an authorization server of its own: at port 3000, or at `--port N`.
 *
 * A client needs only the address of the endpoint: `npx troupe call http://127.0.0.1:3000/mcp`
 * opens a page in the browser, on which you choose who you are. Without a browser:
 * `curl ISSUER/token -d grant_type=client_credentials -d client_id=ada -d client_secret=example -d scope=orders:read`
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { http } from 'troupe';
import { oauth } from 'troupe/oauth';
import { startIssuer } from './issuer.ts';
import server from './server.ts';

const { values } = parseArgs({
  options: { port: { type: 'string', default: '3000' }, 'issuer-port': { type: 'string', default: '0' } },
});

// Tokens are for this address: it must be known before the server listens.
const port = Number(values.port) || (await freePort());
const resource = `http://127.0.0.1:${port}/mcp`;
const issuer = await startIssuer(resource, Number(values['issuer-port']));

// `scopes` are those that every request needs: clients ask for them at first, and for more when a call needs more.
await server.listen(http({ port, auth: oauth({ resource, issuer, scopes: ['orders:read'] }) }));
console.error(`The guarded server is at ${resource}`);
console.error(`Its authorization server is at ${issuer}`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => server.close(`${signal} came`));

async function freePort(): Promise<number> {
  const listener = createServer();
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const address = listener.address();
  listener.close();
  await once(listener, 'close');
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
}
