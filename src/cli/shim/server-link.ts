/** What a shim knows of a server: the two ends of it, and when it is gone. */
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

export interface Life {
  /** Whether the event loop of the server's process turns. */
  turns(): boolean;
  /** Whether its program has ended it: then no other follows. Known once the link is closed. */
  readonly endedItself: boolean;
  /** Ends the process at once. @param why such as `does not respond` */
  end(why: string): void;
}

export interface ServerLink {
  /** What the server says. */
  readonly input: Readable;
  /** What the server hears. */
  readonly output: Writable;
  /** Settled when the server says nothing more. */
  readonly closed: Promise<void>;
  /** Whether the next server finds what requests to this one came to, so that it can tell a repeat. */
  readonly keeps: boolean;
  /** How to see that the server lives, and to replace it where it does not; undefined for a server that others use, too. */
  readonly life?: Life | undefined;
  /** Asks the server to finish what runs, and to end. */
  drain(): void;
  /** At once. */
  destroy(): void;
}

/** A server on a socket. */
export function socketLink(socket: Socket): ServerLink {
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  // The server ends a connection when it has nothing more to say.
  socket.once('end', () => socket.destroy());
  return {
    input: socket,
    output: socket,
    closed,
    keeps: false,
    drain: () => void socket.end(),
    destroy: () => void socket.destroy(),
  };
}
