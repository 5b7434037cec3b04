/** Newline framing on the way out: the few texts of one turn leave in one write, many in several, and a slow reader is told of. */
import type { Writable } from 'node:stream';
import type { Clock } from '../clock.ts';

const DEFAULT_HIGH_WATER = 1_048_576;

/**
 * Texts that do not wait for the end of the turn in which they were sent: a reader takes them in while the next are made. With 64
 * calls in flight that is a quarter to a third more of them in a second, where there is a second processor; a write costs 7 µs.
 */
const MANY = 8;

/** Most characters joined into one write (a single longer text still goes whole): it bounds what the stream copies at once. */
const SLICE = 262_144;

/** What a write fails with when the other end is gone: the end of a connection, not a fault. */
const GONE: ReadonlySet<string> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** Hands one batch to the stream; `done` hears when the operating system has it. False when the stream has enough for now. */
export type WriteBatch = (batch: string, done: (error?: Error | null) => void) => boolean;

export interface LineWriterOptions {
  readonly output: Writable;
  /** Writes to `output` where its own `write` is not the way, as when stdout is guarded. */
  readonly write?: WriteBatch;
  readonly clock: Clock;
  /** Characters of waiting text above which the reader counts as slow, even within one turn. Default 1,048,576; at least 1. */
  readonly highWater?: number;
  /** The reader does not keep up. Said once until `onDrained`. */
  onSlow(): void;
  /** All that was sent is with the operating system again. */
  onDrained(): void;
  /** Nothing can be written any more. Said once, and never because of `release`. */
  onClosed(reason: string): void;
}

/**
 * Writes texts as lines, in order: one write for each turn of the event loop, or one for every eight texts.
 * It never refuses a text and never throws: whoever sends holds back between `onSlow` and `onDrained`.
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
  /** The stream said "enough" and still holds some of it. */
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

  /** Sends one text, which holds no newline (JSON never does). Dropped once the stream is dead. */
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

  /** Resolves when all that was sent is with the operating system, or the stream is dead. */
  flush(): Promise<void> {
    this.#pump();
    if (this.#dead || this.#idle()) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Roughly how much has been sent and is not yet with the operating system, in characters. */
  get pending(): number {
    return this.#queued + this.#output.writableLength;
  }

  /** Lets go of the stream: nothing is sent or reported any more. The stream itself stays as it is. */
  release(): void {
    // A write under way may still fail, and an 'error' that nobody hears ends the process: that listener stays then.
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
      // A stream says "enough" for any write longer than its own mark, though the system took all of it at once.
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
    // An empty text at the end gives the last newline in the same flat string: adding it later would cost a second copy.
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
