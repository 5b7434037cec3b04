/** A gateway over three servers and two APIs whose authors know nothing of approvals: the mounts say which of their calls people must approve. */
import { createServer, openapi, type Server, type Store } from 'troupe';
import * as z from 'zod';
import { effect } from './effects.ts';
import { personOfBrowser, personOfClient } from './people.ts';

function files(): Server {
  const server = createServer({ name: 'files', version: '1.0.0' });
  server.tool('list_files', { annotations: { readOnlyHint: true } }, () => 'plan.txt, notes.txt');
  server.tool('delete_file', { description: 'Deletes a file.', input: z.object({ name: z.string() }) }, ({ name }) =>
    effect(`deleted ${name}`),
  );
  return server;
}

function orders(): Server {
  const server = createServer({ name: 'orders', version: '1.0.0' });
  const input = z.object({ order: z.string(), amount: z.number() });
  server.tool('refund', { description: 'Refunds an order.', input }, ({ order, amount }) =>
    effect(`refunded ${amount} for ${order}`),
  );
  return server;
}

function mail(): Server {
  const server = createServer({ name: 'mail', version: '1.0.0' });
  const input = z.object({ to: z.string() });
  server.tool('send', { description: 'Sends a message.', input }, ({ to }) => effect(`sent to ${to}`));
  return server;
}

interface GatewayOptions {
  /** The address of the APIs. */
  readonly apis: string;
  /** The address of the gateway for browsers. */
  readonly origin: string;
  /** Keeps what waits for people over restarts. Default: memory. */
  readonly store?: Store | undefined;
}

export async function gateway({ apis, origin, store }: GatewayOptions): Promise<Server> {
  const server = createServer({
    name: 'desk',
    version: '1.0.0',
    http: {
      authenticate: ({ header }) => personOfClient(header('authorization')),
      signIn: { url: `${origin}/oauth/callback`, identify: ({ header }) => personOfBrowser(header('cookie')) },
    },
    ...(store && { store }),
    audit: { to: (record) => console.error(JSON.stringify(record)) },
  });
  const byOps = { by: { scope: 'ops' }, expires: '1h' } as const;
  // Somebody else deletes.
  await server.mount('files', files(), { approve: [{ tools: ['delete_*'], ...byOps }] });
  // Small refunds run at once.
  await server.mount('orders', orders(), {
    approve: [{ tools: ['refund'], when: { amount: { min: 100 } }, ...byOps }],
  });
  // The caller consents.
  await server.mount('mail', mail(), { approve: ['send'] });
  // The methods of an OpenAPI document say what is destructive.
  for (const name of ['customers', 'tickets'])
    await server.mount(name, openapi(`${apis}/${name}.json`), { approve: [{ destructive: true, ...byOps }] });
  return server;
}
