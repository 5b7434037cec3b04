/** Connections to a server inside the process: one memory transport serves all clients of a server. */
import { isObject } from '../core/protocol/json.ts';
import { type MemoryPeer, memory } from '../core/transports/memory.ts';
import type { Transport } from '../core/transports/transport.ts';

/** A server of any copy of this package. */
export interface ServerInMemory {
  readonly info: { readonly name: string };
  listen(...transports: readonly Transport[]): Promise<void>;
}

const SERVER = Symbol.for('troupe.server');
/** The inside of a server: it opens a transport itself, although the command that loaded the program listens on its behalf. */
const INSIDE = Symbol.for('troupe.inside');
const doors = new WeakMap<ServerInMemory, Promise<() => MemoryPeer>>();

export function isServerInMemory(value: unknown): value is ServerInMemory {
  return typeof value === 'object' && value !== null && SERVER in value;
}

/** Opens another connection to a server. @throws {Error} if the server is closed */
export async function openInMemory(server: ServerInMemory): Promise<MemoryPeer> {
  let door = doors.get(server);
  if (!door) {
    const { transport, connect } = memory();
    door = open(server, transport).then(() => () => connect());
    doors.set(server, door);
    // A server that could not listen may do so later.
    door.catch(() => doors.delete(server));
  }
  const connect = await door;
  return connect();
}

function open(server: ServerInMemory, transport: Transport): Promise<void> {
  const inside: unknown = Reflect.get(server, INSIDE);
  return opens(inside) ? inside.open(transport) : server.listen(transport);
}

function opens(inside: unknown): inside is { open(transport: Transport): Promise<void> } {
  return isObject(inside) && typeof inside.open === 'function';
}
