/** Connections to a server inside the process: one memory transport serves all clients of a server. */
import { type MemoryPeer, memory } from '../transports/memory.ts';
import type { Transport } from '../transports/transport.ts';

/** A server of any copy of this package. */
export interface ServerInMemory {
  readonly info: { readonly name: string };
  listen(...transports: readonly Transport[]): Promise<void>;
}

const SERVER = Symbol.for('troupe.server');
const doors = new WeakMap<ServerInMemory, Promise<() => MemoryPeer>>();

export function isServerInMemory(value: unknown): value is ServerInMemory {
  return typeof value === 'object' && value !== null && SERVER in value;
}

/** Opens another connection to a server. @throws {Error} if the server is closed */
export async function openInMemory(server: ServerInMemory): Promise<MemoryPeer> {
  let door = doors.get(server);
  if (!door) {
    const { transport, connect } = memory();
    door = server.listen(transport).then(() => () => connect());
    doors.set(server, door);
    // A server that could not listen may do so later.
    door.catch(() => doors.delete(server));
  }
  const open = await door;
  return open();
}
