/** A channel over one pair of streams: one message on each line, as over stdio and sockets. */
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../core/kernel/clock.ts';
import { LineWriter } from '../../core/transports/line-writer.ts';
import { LineReader } from '../../core/transports/lines.ts';
import { beginsAsMessage, messageInLine } from '../../core/transports/message-in-line.ts';
import type { Channel, ChannelFailure, ChannelHost, OutgoingMessage } from './channel.ts';

/** The streams of an open channel. */
interface LineStreams {
  readonly input: Readable;
  readonly output: Writable;
}

export interface LineChannelOptions {
  readonly clock: Clock;
  /** Longest message, in bytes. */
  readonly maxMessageBytes: number;
  /** Lines of the server that are no messages, for the operator's log. */
  readonly stray: (line: string) => void;
}

/** Reads and writes lines on streams that a subclass opens and ends. */
export abstract class LineChannel implements Channel {
  readonly kind = 'stream';
  protected readonly options: LineChannelOptions;
  #host: ChannelHost | undefined;
  #writer: LineWriter | undefined;

  constructor(options: LineChannelOptions) {
    this.options = options;
  }

  open(host: ChannelHost): void {
    this.#host = host;
    this.connect();
  }

  send({ text, id }: OutgoingMessage): void {
    const writer = this.#writer;
    if (!writer) return;
    // A server that does not read leaves the texts of calls that have timed out behind.
    if (writer.pending <= PENDING_MESSAGES * this.options.maxMessageBytes) return writer.send(text);
    if (id === undefined) return;
    this.#host?.send({
      type: 'request failed',
      id,
      failure: {
        reason: 'overloaded',
        message: `the server reads too slowly: ${writer.pending} characters wait for it (${PENDING_MESSAGES} times maxMessageBytes)`,
        carriedOut: 'no',
      },
    });
  }

  async close(): Promise<void> {
    this.#host = undefined;
    const writer = this.#writer;
    this.#writer = undefined;
    await this.disconnect(writer);
    writer?.release();
  }

  /** Opens the streams, and calls {@link opened} or {@link gone}. */
  protected abstract connect(): void;

  /** Ends the streams within a bounded time. `writer` may still hold text. */
  protected abstract disconnect(writer: LineWriter | undefined): Promise<void>;

  protected opened({ input, output }: LineStreams): void {
    const { clock, maxMessageBytes } = this.options;
    let strays = 0;
    const stray = (line: string): void => {
      strays += 1;
      if (strays <= MAX_STRAYS) this.options.stray(line);
      if (strays === MAX_STRAYS) this.options.stray('(the next lines that are no messages are not reported)');
    };
    // Servers print banners and log lines to stdout, and some a message behind such output on the same line.
    const messageOf = (line: string): string | undefined => {
      if (beginsAsMessage(line)) return line;
      const { noise, message } = messageInLine(line) ?? { noise: line, message: undefined };
      // The reader of messages reports what an object or a batch lacks.
      if (message === undefined && /^(?:\{|\[\s*[{\]])/.test(line)) return line;
      if (noise !== '') stray(noise);
      return message;
    };
    const reader = new LineReader({
      maxBytes: maxMessageBytes,
      onLine: (text) => {
        const message = messageOf(text);
        if (message !== undefined) this.#host?.send({ type: 'text', text: message, about: undefined });
      },
      onUnreadable: (reason, bytes, head) => {
        stray(
          `a line of ${bytes} bytes was dropped: ${reason}${reason === 'too long' ? ` (the option is maxMessageBytes, ${maxMessageBytes})` : ''}`,
        );
        if (reason === 'too long') this.#host?.send({ type: 'dropped', envelope: head, bytes });
      },
    });
    this.#writer = new LineWriter({
      output,
      clock,
      onSlow: () => {},
      onDrained: () => {},
      onClosed: () => {},
    });
    input.on('data', (chunk: Buffer) => reader.push(chunk));
    input.on('end', () => reader.end());
    this.#host?.send({ type: 'opened' });
  }

  /** The channel could not open, or broke. @param final another attempt would fail the same way */
  protected gone(failure: ChannelFailure, final = false): void {
    const host = this.#host;
    this.#host = undefined;
    this.#writer = undefined;
    host?.send({ type: 'gone', failure, final });
  }
}

/** Maximum number of lines of one channel that are no messages and are reported all the same. */
const MAX_STRAYS = 20;
/** Longest messages that may wait for a server that does not read. */
const PENDING_MESSAGES = 16;
