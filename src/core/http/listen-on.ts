/** Opens the port of a server, and says what to do if that fails. */
import type { AddressInfo, Server } from 'node:net';

/** Maximum number of connections that wait to be accepted: many clients reconnect at once when a proxy restarts. */
const BACKLOG = 4_096;

/**
 * Opens a port. The server has no listener for its later errors afterwards.
 *
 * @param name of the listener, at the beginning of the error
 * @param address its port, 0 to 65535; 0 is any free one. An exclusive one is not shared with the workers of `node:cluster`
 * @returns the address that is bound
 * @throws {Error} if the address cannot be opened, with a fix
 * @example const { port } = await listenOn(createServer(), 'metrics', { host: '127.0.0.1', port: 0 });
 */
export function listenOn(
  server: Server,
  name: string,
  address: { readonly host: string; readonly port: number; readonly exclusive?: boolean },
): Promise<AddressInfo> {
  const { host, port, exclusive = false } = address;
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`${name}: cannot listen on ${host}: ${why}`));
    const failed = ({ code, message }: NodeJS.ErrnoException): void =>
      fail(code === 'EADDRINUSE' ? `port ${port} is in use. Choose another, or 0 for any free port` : message);
    server.once('error', failed);
    server.listen({ host, port, exclusive, backlog: BACKLOG }, () => {
      server.off('error', failed);
      const bound = server.address();
      if (bound === null || typeof bound === 'string') fail('the port has no address');
      else resolve(bound);
    });
  });
}
