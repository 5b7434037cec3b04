/** Connects test clients to a server inside the process. */
import type { Server } from '../server.ts';
import { memory } from '../transports/memory.ts';
import { TestClient, type TestClientOptions } from './test-client.ts';
import type { Wire } from './wire.ts';

/** One memory transport serves all clients of a server. */
const doors = new WeakMap<Server, Promise<() => Wire>>();

/**
 * Connects a client to a server, in memory. The server need not listen on anything else.
 *
 * @throws {Error} when the server is closed
 * @example
 * const client = await connect(server);
 * await client.initialize();
 * assert.equal((await client.callTool('add', { a: 1, b: 2 })).structuredContent, { sum: 3 });
 * await client.close();
 */
export async function connect(server: Server, options?: TestClientOptions): Promise<TestClient> {
  return new TestClient(await openWire(server), options);
}

/** Opens another connection to a server. */
export async function openWire(server: Server): Promise<Wire> {
  let door = doors.get(server);
  if (!door) {
    door = listen(server);
    doors.set(server, door);
  }
  const open = await door;
  return open();
}

async function listen(server: Server): Promise<() => Wire> {
  const { transport, connect: open } = memory();
  await server.listen(transport);
  return open;
}
