/** Finds a port for a server that cannot choose one itself. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A port that is free, below those that the system gives to outgoing connections: it stays free until its server starts, and
 * while that starts again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    const free = await once(server, 'listening').catch(() => undefined);
    if (!free) continue;
    await new Promise((closed) => server.close(closed));
    return port;
  }
}
