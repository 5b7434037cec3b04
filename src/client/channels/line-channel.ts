/** A channel over one pair of streams: one message on each line, as over stdio and sockets. */
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../clock.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import { LineWriter } from '../../transports/line-writer.ts';
import { LineReader } from '../../transports/lines.ts';
import type { Channel, ChannelFailure, ChannelHost, OutgoingMessage } from './channel.ts';

/** The streams of an open channel. */
export interface LineStreams {
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

  send({ text }: OutgoingMessage): void {
    this.#writer?.send(text);
  }

  abandon(_id: RequestId): void {
    // The connection sends `notifications/cancelled`: all requests share the stream.
  }

  answered(_id: RequestId): void {
    // All requests share the stream.
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
    const { clock, maxMessageBytes, stray } = this.options;
    const reader = new LineReader({
      maxBytes: maxMessageBytes,
      onLine: (text) => {
        // Servers print banners and log lines to stdout. A message is an object or a batch.
        if (text.charCodeAt(0) !== OPENING_BRACE && text.charCodeAt(0) !== OPENING_BRACKET) return stray(text);
        this.#host?.send({ type: 'text', text, about: undefined });
      },
      onUnreadable: (reason, bytes) =>
        stray(
          `a line of ${bytes} bytes was dropped: ${reason}${reason === 'too long' ? ` (the option is maxMessageBytes, ${maxMessageBytes})` : ''}`,
        ),
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

const OPENING_BRACE = 0x7b;
const OPENING_BRACKET = 0x5b;
