/** Connections to a server inside the process: one memory transport serves all clients of a server. */
import { isObject } from '../core/protocol/json.ts';
import { type MemoryClient, type MemoryPeer, memory } from '../core/transports/memory.ts';
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
  const connect = await (doors.get(server) ?? openDoor(server));
  return connect();
}

/**
 * Opens the transport for the connections to a server.
 *
 * @param as the client of all of them. Default: anonymous
 */
export function openDoor(server: ServerInMemory, as?: MemoryClient): Promise<() => MemoryPeer> {
  const { transport, connect } = memory();
  const door = open(server, transport).then(() => () => connect(as));
  doors.set(server, door);
  // A server that could not listen may do so later.
  door.catch(() => doors.delete(server));
  return door;
}

function open(server: ServerInMemory, transport: Transport): Promise<void> {
  const inside: unknown = Reflect.get(server, INSIDE);
  return opens(inside) ? inside.open(transport) : server.listen(transport);
}

function opens(inside: unknown): inside is { open(transport: Transport): Promise<void> } {
  return isObject(inside) && typeof inside.open === 'function';
}
