/**
 * An in-process transport for tests and embedding: passes texts directly to the bus and back, in order and without
 * delay.
 */
import { Buffer } from 'node:buffer';
import { eachInSlices } from '../kernel/clock.ts';
import type { ConnectionId } from '../messages/connection-events.ts';
import { envelopeText } from '../protocol/message-envelope.ts';
import { HEAD_BYTES } from './lines.ts';
import type { Transport, TransportHost } from './transport.ts';

interface MemoryOptions {
  /** Number of texts waiting for a paused peer above which it counts as slow. Default 16; at least 1. */
  readonly slowAfter?: number;
}

/** The client's end of one connection. */
export interface MemoryPeer {
  /** Sends one message. @throws Error after `close`, or when the connection is closed */
  send(text: string): void;
  /** Receives each message from the server. Messages before the first `onText` are buffered for it. */
  onText(listener: (text: string) => void): void;
  /** Ends the input. The server answers the requests in flight, then closes. */
  close(): void;
  /** Disconnects at once, like a crashed client: later output of the server is lost. */
  vanish(): void;
  /** Stops reading. */
  pause(): void;
  /** Resumes reading, beginning with the waiting messages. */
  resume(): void;
  /** Resolves with the reason once the connection is closed. */
  readonly closed: Promise<string>;
}

/** The identity of a connecting client. */
export interface MemoryClient {
  /** The principal of its requests. Default: `anonymous`. */
  readonly principal?: string;
  /** The scopes of that principal. Default: none. */
  readonly scopes?: readonly string[];
}

/**
 * Creates an in-process transport and the function that connects any number of clients to it.
 *
 * @example
 * const { transport, connect } = memory();
 * await server.listen(transport);
 * const peer = connect();
 * peer.onText((text) => console.error(text));
 * peer.send('{"jsonrpc":"2.0","id":1,"method":"ping"}');
 */
export function memory(options: MemoryOptions = {}): { transport: Transport; connect(as?: MemoryClient): MemoryPeer } {
  const transport = new Memory(options.slowAfter ?? 16);
  return { transport, connect: (as = {}) => transport.connect(as) };
}

class Memory implements Transport {
  readonly name = 'memory';
  readonly #slowAfter: number;
  readonly #peers = new Map<ConnectionId, Peer>();
  #host: TransportHost | undefined;
  #cleanup: (() => void)[] = [];

  constructor(slowAfter: number) {
    this.#slowAfter = slowAfter;
  }

  open(host: TransportHost): void {
    if (this.#host) throw new Error('this memory transport is already open. Call memory() for another');
    this.#host = host;
    this.#cleanup = [
      host.bus.on('connection.send', ({ connection, text }) => this.#peers.get(connection)?.receive(text)),
      host.bus.on('connection.end', ({ connection, reason }) => this.#peers.get(connection)?.end(reason)),
      host.bus.on('connection.closed', ({ connection }) => void this.#peers.delete(connection)),
    ];
  }

  connect({ principal, scopes }: MemoryClient): Peer {
    const host = this.#host;
    if (!host)
      throw new Error(
        'the memory transport is not open. Connect after `await server.listen(transport)` and before `server.close()`',
      );
    const peer = new Peer(host, this.#slowAfter);
    this.#peers.set(peer.id, peer);
    host.bus.emit('connection.opened', {
      connection: peer.id,
      transport: this.name,
      ...(principal === undefined ? {} : { principal }),
      ...(scopes === undefined ? {} : { scopes }),
    });
    return peer;
  }

  /** Closes all connections, in slices. */
  async close(): Promise<void> {
    const host = this.#host;
    if (!host) return;
    this.#host = undefined;
    const cleanup = this.#cleanup.splice(0);
    await eachInSlices(host.clock, [...this.#peers.values()], (peer) => peer.finish('server closed'));
    for (const undo of cleanup) undo();
  }
}

class Peer implements MemoryPeer {
  readonly id: ConnectionId;
  readonly closed: Promise<string>;
  readonly #host: TransportHost;
  readonly #slowAfter: number;
  readonly #listeners: ((text: string) => void)[] = [];
  readonly #waiting: string[] = [];
  #resolveClosed: (reason: string) => void = () => {};
  #paused = false;
  #delivering = false;
  #slow = false;
  /** Set once nothing more may be sent, because this peer or the connection is closed. */
  #ended: string | undefined;
  #isClosed = false;
  /** The server's reason to close, while a paused peer has unread messages. */
  #ending: string | undefined;

  constructor(host: TransportHost, slowAfter: number) {
    this.#host = host;
    this.#slowAfter = slowAfter;
    this.id = host.connectionId();
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  send(text: string): void {
    if (this.#ended !== undefined) throw new Error(`cannot send: ${this.#ended}`);
    const { bus, maxMessageBytes } = this.#host;
    // A UTF-16 unit takes at most three bytes of UTF-8, so short texts need no count.
    if (text.length * 3 > maxMessageBytes) {
      const bytes = Buffer.byteLength(text);
      if (bytes > maxMessageBytes) {
        bus.emit('connection.unreadable', {
          connection: this.id,
          reason: 'too long',
          bytes,
          head: envelopeText(text) || text.slice(0, HEAD_BYTES),
        });
        return;
      }
    }
    bus.emit('connection.text', { connection: this.id, text });
  }

  onText(listener: (text: string) => void): void {
    this.#listeners.push(listener);
    this.#deliver();
  }

  close(): void {
    if (this.#ended !== undefined) return;
    this.#ended = 'this peer is closed';
    this.#host.bus.emit('connection.ended', { connection: this.id });
  }

  vanish(): void {
    this.finish('client disconnected');
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#deliver();
    if (this.#slow && this.#waiting.length === 0 && !this.#isClosed) {
      this.#slow = false;
      this.#host.bus.emit('connection.drained', { connection: this.id });
    }
    if (this.#ending !== undefined) this.end(this.#ending);
  }

  /** Delivers one message from the server. */
  receive(text: string): void {
    if (this.#ending !== undefined) return;
    this.#waiting.push(text);
    this.#deliver();
    if (!this.#paused || this.#slow || this.#waiting.length < this.#slowAfter) return;
    this.#slow = true;
    this.#host.bus.emit('connection.slow', { connection: this.id });
  }

  /** Ends the connection on behalf of the server. */
  end(reason: string): void {
    if (this.#paused && this.#waiting.length > 0) this.#ending = reason;
    else this.finish(reason);
  }

  finish(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#ended = `the connection is closed (${reason})`;
    this.#host.bus.emit('connection.closed', { connection: this.id, reason });
    this.#resolveClosed(reason);
  }

  /** Delivers in order, even if a listener sends and gets an answer at once: the answer waits for its turn. */
  #deliver(): void {
    if (this.#delivering || this.#listeners.length === 0) return;
    this.#delivering = true;
    try {
      for (let text = this.#next(); text !== undefined; text = this.#next()) {
        for (const listener of this.#listeners) listener(text);
      }
    } finally {
      this.#delivering = false;
    }
  }

  #next(): string | undefined {
    return this.#paused ? undefined : this.#waiting.shift();
  }
}
