/**
 * One connection over a pair of byte streams: line framing, back-pressure, and one way to close. Shared by stdio and
 * sockets.
 */

import { Buffer } from 'node:buffer';
import type { Readable, Writable } from 'node:stream';
import { durationOf } from '../kernel/duration.ts';
import type { ConnectionId } from '../messages/connection-events.ts';
import { LOCAL } from '../protocol/principals.ts';
import { LineWriter, type WriteBatch } from './line-writer.ts';
import { LineReader } from './lines.ts';
import { RelayedClient } from './relayed-client.ts';
import type { NamedClient, TransportHost } from './transport.ts';
import { LARGE_LENGTH, serveAlone } from './turn-batch.ts';

interface StreamConnectionOptions {
  readonly host: TransportHost;
  /** The transport's name, for 'connection.opened'. */
  readonly transport: string;
  /** The id of the session, if a supervisor persists it beyond this process. */
  readonly session?: string | undefined;
  /** Default: {@link LOCAL}. */
  readonly client?: NamedClient;
  readonly input: Readable;
  /** The name of the input in reasons and in the log: `stdin`. */
  readonly inputName: string;
  readonly output: Writable;
  /** See `LineWriterOptions.write`. */
  readonly write?: WriteBatch;
  /** Called right after 'connection.ended', at most once. */
  onEnded(reason: string): void;
  /** Called right after 'connection.closed', at most once. */
  onClosed(reason: string): void;
}

/**
 * Publishes incoming texts on the bus, and sends outgoing texts. The transport routes the bus's 'connection.send' to
 * `send`.
 */
export class StreamConnection {
  readonly id: ConnectionId;
  readonly #options: StreamConnectionOptions;
  readonly #reader: LineReader;
  readonly #writer: LineWriter;
  readonly #relayed: RelayedClient;
  /** Lines that wait for the turn of a large line; the first is large. The input is paused, so they are of one chunk. */
  #waiting: string[] = [];
  /** The client does not read. */
  #slow = false;
  #reading = false;
  #ended = false;
  #closed = false;
  #closing: Promise<void> | undefined;

  constructor(options: StreamConnectionOptions) {
    const { host, input, output, write } = options;
    const connection = host.connectionId();
    this.id = connection;
    this.#options = options;
    this.#reader = new LineReader({
      maxBytes: host.maxMessageBytes,
      onLine: (text) => {
        if (this.#reading) this.#line(text);
      },
      onUnreadable: (reason, bytes, head) => {
        this.#passAll();
        if (this.#reading) this.#relayed.unreadable(reason, bytes, head);
      },
    });
    this.#relayed = new RelayedClient({ host, connection, send: (text) => this.send(text) });
    this.#writer = new LineWriter({
      output,
      ...(write ? { write } : {}),
      clock: host.clock,
      onSlow: () => {
        this.#slow = true;
        this.#relayed.slow();
        host.bus.emit('connection.slow', { connection });
        // Stop reading while the peer does not read: its own writes then block in turn.
        if (this.#reading) input.pause();
      },
      onDrained: () => {
        this.#slow = false;
        this.#relayed.drained();
        host.bus.emit('connection.drained', { connection });
        this.#resume();
      },
      onClosed: (reason) => this.#finish(reason),
    });
  }

  /** Publishes 'connection.opened' and begins to read. */
  open(): void {
    const { host, input, transport, session, client = { principal: LOCAL } } = this.#options;
    host.bus.emit('connection.opened', {
      connection: this.id,
      transport,
      ...client,
      ...(session ? { session } : {}),
    });
    this.#reading = true;
    // An input that has already ended emits no event.
    if (input.destroyed || input.readableEnded) host.clock.soon(this.#inputEnded);
    keepAlive(input, true);
    input.on('end', this.#inputEnded).on('close', this.#inputEnded).on('error', this.#inputFailed);
    input.on('data', this.#data);
  }

  /** Sends one text without its line end; dropped if the connection is closed. */
  send(text: string): void {
    if (!this.#closing) this.#writer.send(text);
  }

  /** Treats the input as ended although the stream has not. Discards an unfinished line. */
  endInput(reason: string): void {
    if (this.#ended || this.#closed) return;
    this.#ended = true;
    this.#passAll();
    this.#stopReading();
    this.#options.host.bus.emit('connection.ended', { connection: this.id });
    this.#options.onEnded(reason);
  }

  /**
   * Flushes, then closes. Resolves after 'connection.closed'; later calls return the first one's promise. If the peer
   * reads nothing for `flushMs` milliseconds, the remaining output is lost, and a log message says so.
   */
  close(reason: string, flushMs: number): Promise<void> {
    this.#closing ??= this.#flushAndClose(reason, flushMs);
    return this.#closing;
  }

  async #flushAndClose(reason: string, flushMs: number): Promise<void> {
    const { host } = this.#options;
    this.#stopReading();
    const flushed = await this.#flush(flushMs);
    if (!flushed)
      host.log(
        'warning',
        `${this.#options.transport}: the client read nothing for ${durationOf(flushMs)} while closing; the remaining output is lost`,
      );
    this.#finish(reason);
  }

  /**
   * Resolves to true when the peer has read everything. Gives up after `ms` milliseconds in which the peer read nothing: a slow
   * reader is not a stuck one.
   */
  #flush(ms: number): Promise<boolean> {
    const { clock } = this.#options.host;
    const flushed = this.#writer.flush();
    return new Promise((resolve) => {
      let left = this.#writer.pending;
      const look = (): void => {
        const now = this.#writer.pending;
        if (now >= left) resolve(false);
        else timer = clock.after(ms, look);
        left = now;
      };
      let timer = clock.after(ms, look);
      void flushed.then(() => {
        timer.cancel();
        resolve(true);
      });
    });
  }

  #finish(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#closing ??= Promise.resolve();
    this.#stopReading();
    this.#relayed.end();
    keepAlive(this.#options.input, false);
    this.#writer.release();
    this.#options.host.bus.emit('connection.closed', { connection: this.id, reason });
    this.#options.onClosed(reason);
  }

  readonly #data = (chunk: Buffer | string): void => {
    this.#reader.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  };

  /** Passes a line on. A large line has a turn of the event loop for itself, and later lines wait behind it. */
  #line(text: string): void {
    if (this.#waiting.length > 0) this.#waiting.push(text);
    else if (text.length <= LARGE_LENGTH) this.#relayed.line(text);
    else this.#await(text);
  }

  #await(text: string): void {
    this.#waiting.push(text);
    serveAlone({ serve: () => this.#passLarge() });
    if (this.#waiting.length > 0) this.#options.input.pause();
  }

  /** Passes the waiting large line on, and the lines behind it up to the next large one. */
  #passLarge(): void {
    const [large, ...others] = this.#waiting.splice(0);
    if (large === undefined || !this.#reading) return;
    this.#relayed.line(large);
    for (const text of others) this.#line(text);
    this.#resume();
  }

  /** Passes all waiting lines on at once, before something that must not overtake them. */
  #passAll(): void {
    for (const text of this.#waiting.splice(0)) if (this.#reading) this.#relayed.line(text);
  }

  #resume(): void {
    if (this.#reading && !this.#slow && this.#waiting.length === 0) this.#options.input.resume();
  }

  readonly #inputEnded = (): void => {
    if (!this.#reading) return;
    this.#reader.end();
    this.endInput(`${this.#options.inputName} ended`);
  };

  readonly #inputFailed = (error: Error): void => {
    if (!this.#reading) return;
    this.endInput(`reading ${this.#options.inputName} failed: ${error.message}`);
  };

  #stopReading(): void {
    if (!this.#reading) return;
    this.#reading = false;
    const { input } = this.#options;
    // Keep the 'error' listener: an input that fails later must not end the process.
    input.off('data', this.#data).off('end', this.#inputEnded).off('close', this.#inputEnded);
    input.pause();
  }
}

/** Lets a stream keep the process alive or not, if it supports that: sockets and pipes do, files may not. */
function keepAlive(stream: Readable, alive: boolean): void {
  const name = alive ? 'ref' : 'unref';
  const method: unknown = Reflect.get(stream, name);
  if (typeof method === 'function') Reflect.apply(method, stream, []);
}
