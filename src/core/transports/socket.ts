/**
 * The socket transport: stdio framing over a unix domain socket (a named pipe on Windows), one connection for each
 * client.
 */
import { createServer, type Socket } from 'node:net';
import { eachInSlices } from '../kernel/clock.ts';
import type { ConnectionId } from '../messages/connection-events.ts';
import * as option from '../protocol/option-rows.ts';
import { namedClient } from './check-caller.ts';
import { bind, isWindows } from './socket-path.ts';
import { StreamConnection } from './stream-connection.ts';
import type { NamedClient, Transport, TransportHost } from './transport.ts';

/** Milliseconds for the peer to close its side after everything was sent. */
const PART_MS = 500;

export interface SocketOptions {
  /** Maximum number of clients, at least 1. Further clients get an error and are disconnected. Default 256. */
  readonly maxConnections?: number | undefined;
  /** Milliseconds that closing a connection waits for a client that reads nothing. Default 2,000. */
  readonly flushMs?: number | undefined;
  /**
   * The process only serves: exceptions that a handler throws too late are logged and do not end the process. Default
   * false.
   */
  readonly ownsProcess?: boolean | undefined;
  /** The principal of every client, as for `stdio()`. Default `local user`. */
  readonly principal?: string | undefined;
  /** The scopes of that principal. Default: every scope for `local user`, none for another name. */
  readonly scopes?: readonly string[] | undefined;
  /** Receives the number of connected clients whenever it changes. */
  readonly onCount?: ((connected: number) => void) | undefined;
}

const ROWS: option.Rows<SocketOptions> = {
  maxConnections: option.count,
  flushMs: option.delay,
  ownsProcess: option.flag,
  // namedClient checks them.
  principal: option.anything,
  scopes: option.anything,
  onCount: option.functional,
};

/**
 * Serves any number of clients of one machine and one user: the file has mode 0600, in a directory that no other user
 * may write to. Replaces the file of a dead server. On Windows the path is the name of a pipe (`\\.\pipe\…`), which has
 * no mode: Windows decides who may connect.
 *
 * @param path at most 107 bytes on Linux, 103 elsewhere
 * @throws {TypeError | RangeError} for an unknown or invalid option, such as a `maxConnections` that is not a whole number
 * @example await server.listen(socket('/run/user/1000/my-server.sock'));
 */
export function socket(path: string, options: SocketOptions = {}): Transport {
  return new SocketTransport(path, options);
}

class SocketTransport implements Transport {
  readonly name = 'socket';
  readonly ownsProcess: boolean;
  readonly everyClient: NamedClient;
  readonly #path: string;
  readonly #options: SocketOptions;
  readonly #maxConnections: number;
  readonly #connections = new Map<ConnectionId, StreamConnection>();
  /** Every open socket, including those whose connection has ended. */
  readonly #sockets = new Set<Socket>();
  #host: TransportHost | undefined;
  #unbind: (() => void) | undefined;
  #cleanup: (() => void)[] = [];
  #full = false;
  #closing: Promise<void> | undefined;

  constructor(path: string, options: SocketOptions) {
    option.check('socket: ', options, ROWS);
    const { maxConnections = 256, ownsProcess = false } = options;
    this.everyClient = namedClient('socket', options);
    this.ownsProcess = ownsProcess;
    this.#path = path;
    this.#options = options;
    this.#maxConnections = maxConnections;
  }

  async open(host: TransportHost): Promise<void> {
    if (this.#host || this.#closing)
      throw new Error('this socket transport was already opened. Call socket() for another');
    this.#host = host;
    // A client that ends its input still gets its answers: only the server closes its side.
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket, host));
    try {
      this.#unbind = await bind(server, this.#path);
    } catch (error) {
      this.#host = undefined;
      throw error;
    }
    if (isWindows)
      host.log(
        'warning',
        `socket: ${this.#path} has no file mode. Windows decides who may connect to a pipe (default: you, administrators and the system)`,
      );
    server.on('error', (error) => host.log('error', `socket: cannot accept a client: ${error.message}`));
    this.#cleanup = [
      host.bus.on('connection.send', ({ connection, text }) => this.#connections.get(connection)?.send(text)),
      host.bus.on(
        'connection.end',
        ({ connection, reason }) => void this.#connections.get(connection)?.close(reason, this.#flushMs()),
      ),
    ];
    if (this.#closing) this.stopAccepting();
  }

  /** Also removes the file. */
  stopAccepting(): void {
    this.#unbind?.();
    this.#unbind = undefined;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.stopAccepting();
    const flushMs = this.#flushMs();
    const closing: Promise<void>[] = [];
    if (this.#host)
      await eachInSlices(this.#host.clock, [...this.#connections.values()], (connection) => {
        closing.push(connection.close('server closed', flushMs));
      });
    await Promise.all(closing);
    await Promise.all([...this.#sockets].map(closed));
    for (const undo of this.#cleanup.splice(0)) undo();
  }

  #accept(socket: Socket, host: TransportHost): void {
    this.#sockets.add(socket);
    socket.once('close', () => void this.#sockets.delete(socket));
    if (this.#connections.size >= this.#maxConnections) return this.#refuse(socket, host);
    const connection = new StreamConnection({
      host,
      transport: this.name,
      input: socket,
      inputName: 'the socket',
      output: socket,
      client: this.everyClient,
      // The core answers the requests in flight and then ends the connection.
      onEnded() {},
      onClosed: () => {
        this.#connections.delete(connection.id);
        this.#full = false;
        part(socket, host);
        this.#options.onCount?.(this.#connections.size);
      },
    });
    this.#connections.set(connection.id, connection);
    connection.open();
    this.#options.onCount?.(this.#connections.size);
  }

  /** Sends one error (code Overloaded of `protocol/errors.ts`), without an id because nothing was read, and closes. */
  #refuse(socket: Socket, host: TransportHost): void {
    const why = `this server accepts ${this.#maxConnections} connections at once (maxConnections of socket())`;
    if (!this.#full) host.log('warning', `socket: rejected a client: ${why}`);
    this.#full = true;
    socket.on('error', () => {});
    socket.write(
      `{"jsonrpc":"2.0","id":null,"error":{"code":-31001,"message":"${why}. Retry when another client has disconnected"}}\n`,
    );
    part(socket, host);
  }

  #flushMs(): number {
    return this.#options.flushMs ?? 2_000;
  }
}

/**
 * Ends the server's side and waits briefly for the peer. Closing a socket with unread bytes resets the peer, which may
 * lose the last output.
 */
function part(socket: Socket, { clock }: TransportHost): void {
  const timer = clock.after(PART_MS, () => socket.destroy());
  socket.once('close', () => timer.cancel());
  socket.ref();
  socket.end();
  socket.resume();
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}
