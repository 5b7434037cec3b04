/** Connects test clients to a server inside the process. */

import type { Client } from '../client/client-interface.ts';
import { describe, isObject } from '../core/protocol/json.ts';
import type { NoneKnown, ServerTypes, TypesOf } from '../core/protocol/server-types.ts';
import { checkCaller } from '../core/transports/check-caller.ts';
import { type MemoryClient, memory } from '../core/transports/memory.ts';
import type { Server } from '../features/server/server.ts';
import { TestClient, type TestClientOptions } from './test-client.ts';
import type { Wire } from './wire.ts';

/** One memory transport serves all clients of a server. */
const doors = new WeakMap<Server, Promise<(as: MemoryClient) => Wire>>();

export interface ConnectToServerOptions extends TestClientOptions {
  /** The caller of its requests, as an authenticator would name it. Default: an anonymous client. */
  readonly auth?: MemoryClient;
}

/**
 * Connects a client to a server, in memory. The server need not listen on anything else.
 *
 * @throws {Error} when the server is closed
 * @throws {TypeError} for a caller that is invalid
 * @example
 * const client = await connect(server, { auth: { principal: 'ada', scopes: ['orders:read'] } });
 * await client.initialize();
 * assert.deepEqual((await client.call('add', { a: 1, b: 2 })).structuredContent, { sum: 3 });
 * await client.close();
 */
export function connect<S extends Server>(
  server: S,
  options?: ConnectToServerOptions,
): Promise<TestClientOf<TypesOf<S>>>;
export async function connect(server: Server, { auth, ...options }: ConnectToServerOptions = {}): Promise<TestClient> {
  checkAuth(auth);
  return new TestClient(await openWire(server, auth), options);
}

/** A client for tests with the types of its server. */
export type TestClientOf<Types extends ServerTypes> =
  NoneKnown<Types['tools'] & Types['prompts'] & Types['resources']> extends true
    ? TestClient
    : Omit<TestClient, keyof Client> & Client<Types>;

/** @throws {TypeError} for a caller that would be an anonymous one without a warning */
function checkAuth(auth: unknown): void {
  if (auth === undefined) return;
  if (!isObject(auth)) throw new TypeError(`connect: auth: expected { principal, scopes }, got ${describe(auth)}`);
  checkCaller('connect: auth', auth.principal, auth.scopes);
}

/** Opens another connection to a server, of this caller. */
export async function openWire(server: Server, as: MemoryClient = {}): Promise<Wire> {
  let door = doors.get(server);
  if (!door) {
    door = listen(server);
    doors.set(server, door);
  }
  const open = await door;
  return open(as);
}

async function listen(server: Server): Promise<(as: MemoryClient) => Wire> {
  const { transport, connect: open } = memory();
  await server.listen(transport);
  return open;
}
