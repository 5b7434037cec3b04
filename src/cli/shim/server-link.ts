/** A shim's connection to a server: two streams, their end, and control over the process. */
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

/** A server process that serves only this shim. */
export interface OwnProcess {
  /** True if its event loop runs. */
  loopRuns(): boolean;
  /** True if the program has ended itself, so that it is not restarted. Valid once the link is closed. */
  readonly endedItself: boolean;
  /** Kills the process. @param why such as `does not respond` */
  kill(why: string): void;
}

export interface ServerLink {
  /** Messages from the server. */
  readonly input: Readable;
  /** Messages to the server. */
  readonly output: Writable;
  /** Settles when the server sends nothing more. */
  readonly closed: Promise<void>;
  /** True if the next server knows the results of requests to this one, so that it recognises a repeated request. */
  readonly durable: boolean;
  /** The server's process; undefined for a shared server. */
  readonly ownProcess?: OwnProcess | undefined;
  /** Asks the server to finish its running requests and to end. */
  drain(): void;
  /** Closes the connection at once. */
  destroy(): void;
}

/** Connects to a shared server through a socket. */
export function socketLink(socket: Socket): ServerLink {
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  // The server ends a connection after its last message.
  socket.once('end', () => socket.destroy());
  return {
    input: socket,
    output: socket,
    closed,
    durable: false,
    drain: () => void socket.end(),
    destroy: () => void socket.destroy(),
  };
}
