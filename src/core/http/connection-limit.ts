/** Limits the connections of an HTTP server: a new connection replaces the one that has been idle for the longest time. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * `server.maxConnections` would close each further connection, so a program that holds idle ones would lock everyone else out.
 *
 * @param max the maximum number of open connections. If all of them have requests, a new one is closed
 */
export function limitConnections(server: Server, max: number): void {
  /** The open connections with the number of their requests. */
  const requests = new Map<Socket, number>();
  /** Those without a request. A set keeps its order: the one that has been idle for the longest time is first. */
  const idle = new Set<Socket>();
  const drop = (socket: Socket): void => {
    requests.delete(socket);
    idle.delete(socket);
    socket.destroy();
  };
  server.on('connection', (socket) => {
    if (requests.size >= max) {
      const [idlest] = idle;
      drop(idlest ?? socket);
      if (!idlest) return;
    }
    requests.set(socket, 0);
    idle.add(socket);
    socket.once('close', () => drop(socket));
  });
  server.on('request', ({ socket }, response) => {
    requests.set(socket, (requests.get(socket) ?? 0) + 1);
    idle.delete(socket);
    response.once('close', () => {
      const running = requests.get(socket);
      if (running === undefined) return;
      requests.set(socket, running - 1);
      if (running === 1) idle.add(socket);
    });
  });
}
