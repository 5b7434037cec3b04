/**
 * Newline framing for output: joins the texts of one turn into one write, splits many into several, and reports a slow
 * reader.
 */
import type { Writable } from 'node:stream';
import type { Clock } from '../kernel/clock.ts';

const DEFAULT_HIGH_WATER = 1_048_576;

/**
 * Number of texts that are written before the end of their turn, so that the reader processes them while the next are
 * produced. With 64 calls in flight and a second processor, this increases throughput by a quarter to a third; a write
 * costs 7 µs.
 */
const MANY = 8;

/**
 * Maximum number of characters joined into one write, which limits what the stream copies at once. A single longer text
 * is written whole.
 */
const SLICE = 262_144;

/** Error codes of a write whose reader has disconnected: the end of a connection, not a fault. */
const GONE: ReadonlySet<string> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/**
 * Passes one batch to the stream; calls `done` when the operating system has it. Returns false if the stream's buffer
 * is full.
 */
export type WriteBatch = (batch: string, done: (error?: Error | null) => void) => boolean;

interface LineWriterOptions {
  readonly output: Writable;
  /** Replaces the `write` of `output`, for example when stdout is guarded. */
  readonly write?: WriteBatch;
  readonly clock: Clock;
  /**
   * Number of waiting characters above which the reader counts as slow, even within one turn. Default 1,048,576; at
   * least 1.
   */
  readonly highWater?: number;
  /** The reader is slow. Called once until `onDrained`. */
  onSlow(): void;
  /** The operating system has everything that was sent. */
  onDrained(): void;
  /** Nothing can be written any more. Called once, and never because of `release`. */
  onClosed(reason: string): void;
}

/**
 * Writes texts as lines, in order: one write for each turn of the event loop, or one for every eight texts. It accepts
 * every text and never throws: senders must pause between `onSlow` and `onDrained`.
 *
 * @example
 * const writer = new LineWriter({ output: process.stdout, clock, onSlow: pause, onDrained: resume, onClosed: stop });
 * writer.send('{"jsonrpc":"2.0","id":1,"result":{}}');
 */
export class LineWriter {
  readonly #options: LineWriterOptions;
  readonly #output: Writable;
  readonly #write: WriteBatch;
  readonly #highWater: number;
  #queue: string[] = [];
  /** Characters in `#queue`, newlines included. */
  #queued = 0;
  #scheduled = false;
  /** The stream's buffer is full and not yet drained. */
  #blocked = false;
  #slow = false;
  #dead = false;
  #waiting: (() => void)[] = [];

  constructor(options: LineWriterOptions) {
    const { output, write, highWater } = options;
    this.#options = options;
    this.#output = output;
    this.#write = write ?? ((batch, done) => output.write(batch, 'utf8', done));
    this.#highWater = highWater ?? DEFAULT_HIGH_WATER;
    output.on('error', this.#failed);
    output.on('close', this.#closed);
  }

  /** Sends one text without newlines (JSON has none). Drops it if the stream is dead. */
  send(text: string): void {
    if (this.#dead) return;
    this.#queue.push(text);
    this.#queued += text.length + 1;
    if (!this.#scheduled && !this.#blocked) {
      this.#scheduled = true;
      this.#options.clock.soon(this.#pumpSoon);
    }
    if (this.#queue.length >= MANY && !this.#blocked) this.#pump();
    if (this.#queued > this.#highWater) this.#goSlow();
  }

  /** Resolves when the operating system has everything that was sent, or the stream is dead. */
  flush(): Promise<void> {
    this.#pump();
    if (this.#dead || this.#idle()) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Approximate number of sent characters that the operating system does not have yet. */
  get pending(): number {
    return this.#queued + this.#output.writableLength;
  }

  /** Detaches from the stream: sends and reports nothing more. The stream itself stays unchanged. */
  release(): void {
    // A pending write may still fail, and an 'error' without a listener ends the process, so keep the listener in that
    // case.
    if (!this.#dead && this.#idle()) this.#output.off('error', this.#failed);
    this.#output.off('close', this.#closed);
    this.#stop();
  }

  readonly #pumpSoon = (): void => {
    this.#scheduled = false;
    this.#pump();
  };

  #pump(): void {
    while (this.#queue.length > 0 && !this.#blocked && !this.#dead) {
      const accepted = this.#write(this.#take(), this.#written);
      // A stream reports a full buffer for any write longer than its high-water mark, even if the system accepted all
      // of it.
      this.#blocked = !accepted && this.#output.writableLength > 0;
    }
    if (this.#blocked) this.#goSlow();
    else if (this.#idle()) this.#settle();
  }

  #take(): string {
    if (this.#queued <= SLICE) return this.#batch(this.#queue.length);
    let count = 0;
    let length = 0;
    for (const text of this.#queue) {
      if (length >= SLICE) break;
      length += text.length + 1;
      count += 1;
    }
    return this.#batch(count);
  }

  #batch(count: number): string {
    const texts = count === this.#queue.length ? this.#queue : this.#queue.splice(0, count);
    if (texts === this.#queue) this.#queue = [];
    // An empty text at the end puts the last newline into the same flat string; adding it later would cost a second
    // copy.
    texts.push('');
    const batch = texts.join('\n');
    this.#queued -= batch.length;
    return batch;
  }

  readonly #written = (error?: Error | null): void => {
    if (error) {
      this.#failed(error);
      return;
    }
    if (this.#output.writableLength === 0) this.#blocked = false;
    this.#pump();
  };

  #idle(): boolean {
    return this.#queue.length === 0 && this.#output.writableLength === 0;
  }

  #settle(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
    if (!this.#slow || this.#dead) return;
    this.#slow = false;
    this.#options.onDrained();
  }

  #goSlow(): void {
    if (this.#slow || this.#dead) return;
    this.#slow = true;
    this.#options.onSlow();
  }

  readonly #failed = (error: Error): void => {
    this.#die(
      'code' in error && GONE.has(String(error.code)) ? 'client disconnected' : `writing failed: ${error.message}`,
    );
  };

  readonly #closed = (): void => this.#die('client disconnected');

  #die(reason: string): void {
    if (this.#dead) return;
    this.#stop();
    this.#options.onClosed(reason);
  }

  #stop(): void {
    this.#dead = true;
    this.#queue = [];
    this.#queued = 0;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
