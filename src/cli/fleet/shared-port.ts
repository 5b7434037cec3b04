/** The port of `troupe serve --nodes`: accepts each connection and passes it to the node with the fewest. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { listenOn } from '../../core/http/listen-on.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';

/** Maximum number of connections that wait for a node. */
const MAX_WAITING = 4_096;
/** Maximum time in milliseconds that a connection waits for a node. */
const WAIT_MS = 30_000;

/** A node process that serves connections. */
export interface ConnectionTaker {
  /** The number of its connections, with those that are on their way to it. */
  readonly connections: number;
  /** True if it has not confirmed a connection in time: its event loop is blocked, or its process is stopped. */
  readonly busy: boolean;
  /** Takes a connection from which nothing was read. */
  take(socket: Socket): void;
}

export class SharedPort {
  readonly #clock: Clock;
  readonly #server: Server;
  readonly #takers = new Set<ConnectionTaker>();
  /** The connections without a node: all nodes are starting. */
  readonly #waiting = new Map<Socket, Timer>();

  constructor(clock: Clock) {
    this.#clock = clock;
    // A node reads the connection from its first byte.
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.pass(socket));
  }

  /** @throws {Error} if the address cannot be opened, with a fix */
  async open(address: { readonly host: string; readonly port: number }): Promise<AddressInfo> {
    const bound = await listenOn(this.#server, 'http', address);
    // A lack of file descriptors fails one connection, not the port.
    this.#server.on('error', () => {});
    return bound;
  }

  /** Passes connections to this node from now on. */
  add(taker: ConnectionTaker): void {
    this.#takers.add(taker);
    for (const [socket, timer] of this.#waiting) {
      timer.cancel();
      this.#waiting.delete(socket);
      this.pass(socket);
    }
  }

  /** Passes no more connections to this node. */
  remove(taker: ConnectionTaker): void {
    this.#takers.delete(taker);
  }

  /** Passes a connection to the node with the fewest, or keeps it until there is a node. */
  pass(socket: Socket): void {
    let least: ConnectionTaker | undefined;
    for (const taker of this.#takers) if (!least || load(taker) < load(least)) least = taker;
    if (least) {
      // Last in the order: of several nodes with equally few connections, the next connection goes to another one.
      this.#takers.delete(least);
      this.#takers.add(least);
      return least.take(socket);
    }
    if (this.#waiting.size >= MAX_WAITING) return void socket.destroy();
    const leave = (): void => {
      this.#waiting.get(socket)?.cancel();
      this.#waiting.delete(socket);
    };
    socket.once('close', leave);
    this.#waiting.set(
      socket,
      this.#clock.after(WAIT_MS, () => socket.destroy()),
    );
  }

  /** Accepts nothing more, and closes the connections that wait. */
  close(): void {
    this.#server.close();
    for (const socket of this.#waiting.keys()) socket.destroy();
  }
}

/** A busy node gets connections only if all are busy. */
function load({ connections, busy }: ConnectionTaker): number {
  return connections + (busy ? 1e9 : 0);
}
