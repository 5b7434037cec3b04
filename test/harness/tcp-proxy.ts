/** A cable between a client and a server on loopback, which a test can cut and heal. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class TcpProxy {
  readonly port: number;
  readonly #server: Server;
  #target: number;
  readonly #sockets = new Set<Socket>();
  #whole = true;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    server.on('connection', (near) => this.#join(near));
  }

  /** @param target the port to which the cable leads */
  static async open(target: number): Promise<TcpProxy> {
    const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new TcpProxy(server, address.port, target);
  }

  /** Nothing passes any more, and neither end learns of it, as with a network that drops packets. New connections wait. */
  cut(): void {
    this.#whole = false;
    for (const socket of this.#sockets) socket.pause();
  }

  /** What waited passes. */
  heal(): void {
    this.#whole = true;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Further connections lead to another port, and pass. Those that are there stay as they are, such as cut. */
  divert(target: number): void {
    this.#target = target;
    this.#whole = true;
  }

  /** Further connections lead to another port. Those that are there are closed. */
  lead(target: number): void {
    this.divert(target);
    this.reset();
  }

  /** Closes all connections; further ones are accepted. */
  reset(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(near: Socket): void {
    const far = connect({ port: this.#target, host: '127.0.0.1', noDelay: true });
    near.setNoDelay(true);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.on('data', (bytes) => {
        // A slow reader slows its writer, as the network does.
        if (!to.write(bytes)) {
          from.pause();
          to.once('drain', () => {
            if (this.#whole) from.resume();
          });
        }
      });
      from.on('end', () => to.end());
      from.on('error', () => {});
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#whole) from.resume();
      else from.pause();
    }
  }
}
