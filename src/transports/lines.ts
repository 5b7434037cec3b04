/** Newline framing on the way in: chunks of bytes become whole lines of text. It knows no stream and no clock, and looks inside of no line but one that it skips. */
import { Buffer, constants, isUtf8 } from 'node:buffer';
import { MessageEnvelope } from '../protocol/message-envelope.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = 0xfeff;
const REPLACEMENT = '\uFFFD';
const NOTHING = Buffer.alloc(0);

/** What is kept of the start of a line that is skipped, in bytes. */
export const HEAD_BYTES = 1_024;

export interface LineReaderOptions {
  /** Longest line accepted, in bytes without its newline (a carriage return counts). 1 to the longest string of this Node. */
  readonly maxBytes: number;
  /** Hears each line, in order, without its line end. Never empty. Must not call `push`. */
  onLine(text: string): void;
  /**
   * Hears of each line that was skipped, once its last byte has come; `bytes` is its length, and `head` tells what it is: id
   * and method of one that is too long, wherever in it they stand ({@link MessageEnvelope.text}), or else its first 1,024 bytes as text.
   * The next line is read as usual.
   */
  onUnreadable(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void;
}

/**
 * Cuts a stream of bytes into lines (MCP basic/transports/stdio: one message a line, UTF-8).
 * Accepts CRLF, skips empty lines, drops a byte order mark at the very start.
 * Holds at most `maxBytes` of an unfinished line (one and a half times that for a moment, while its store grows).
 *
 * It cannot be paused, and need not be: whoever pauses the stream still gets the lines of the chunk at hand, which a
 * pipe or socket bounds at 64 KiB.
 *
 * @throws RangeError when `maxBytes` is not a whole number within its bounds.
 * @example
 * const reader = new LineReader({ maxBytes: 4_194_304, onLine: (text) => console.error(text), onUnreadable: () => {} });
 * input.on('data', (chunk) => reader.push(chunk)).on('end', () => reader.end());
 */
export class LineReader {
  readonly #options: LineReaderOptions;
  #maxBytes = 0;
  /** The start of a line whose end has not come: the first `#heldLength` bytes count. */
  #held: Buffer = NOTHING;
  #heldLength = 0;
  /** A line that is too long, while it passes by. */
  #skipping: SkippedLine | undefined;
  #atStart = true;

  constructor(options: LineReaderOptions) {
    this.#options = options;
    this.maxBytes = options.maxBytes;
  }

  /** Longest line accepted from now on; a line that has begun counts. */
  set maxBytes(maxBytes: number) {
    if (!Number.isInteger(maxBytes) || maxBytes < 1 || maxBytes > constants.MAX_STRING_LENGTH) {
      throw new RangeError(
        `maxBytes: expected a whole number from 1 to ${constants.MAX_STRING_LENGTH}, got ${maxBytes}`,
      );
    }
    this.#maxBytes = maxBytes;
  }

  /** The bytes that are held of a line whose end has not come. */
  get heldBytes(): number {
    return this.#heldLength;
  }

  /** Takes the next bytes and delivers every line that they complete. The chunk is not kept. */
  push(chunk: Buffer): void {
    const last = chunk.lastIndexOf(NEWLINE);
    if (last === -1) {
      this.#hold(chunk);
      return;
    }
    let start = 0;
    if (this.#heldLength > 0 || this.#skipping) {
      const end = chunk.indexOf(NEWLINE);
      this.#hold(chunk.subarray(0, end));
      this.#finish();
      start = end + 1;
    }
    if (start <= last) this.#lines(chunk, start, last);
    if (last + 1 < chunk.length) this.#hold(chunk.subarray(last + 1));
  }

  /** The bytes are over: delivers a last line that lacks its newline. */
  end(): void {
    if (this.#heldLength > 0 || this.#skipping) this.#finish();
  }

  /** Keeps a copy of the start of a line, in a store that doubles: many small chunks cost neither n² copies nor n objects. */
  #hold(bytes: Buffer): void {
    const length = this.#heldLength + bytes.length;
    if (this.#skipping || length > this.#maxBytes) {
      this.#skipping ??= new SkippedLine(this.#held.subarray(0, this.#heldLength));
      this.#skipping.push(bytes);
      this.#release();
      return;
    }
    if (length > this.#held.length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#maxBytes, Math.max(length, 2 * this.#heldLength)));
      this.#held.copy(grown, 0, 0, this.#heldLength);
      this.#held = grown;
    }
    bytes.copy(this.#held, this.#heldLength);
    this.#heldLength = length;
  }

  #release(): void {
    this.#held = NOTHING;
    this.#heldLength = 0;
  }

  #finish(): void {
    const skipped = this.#skipping;
    if (skipped) {
      this.#skipping = undefined;
      this.#unreadable('too long', skipped.bytes, skipped.head);
      return;
    }
    const line = this.#held.subarray(0, this.#heldLength);
    this.#release();
    this.#line(line);
  }

  /** Delivers the lines of `chunk` from `start` to the newline at `end`. */
  #lines(chunk: Buffer, start: number, end: number): void {
    if (end - start <= this.#maxBytes) {
      // A newline byte is never part of a longer UTF-8 sequence: decoding once and cutting the text gives the same lines.
      const block = chunk.toString('utf8', start, end);
      if (!block.includes(REPLACEMENT)) {
        let from = 0;
        for (let to = block.indexOf('\n'); to !== -1; to = block.indexOf('\n', from)) {
          this.#deliver(block.slice(from, to));
          from = to + 1;
        }
        this.#deliver(block.slice(from));
        return;
      }
    }
    for (let from = start; from <= end; ) {
      const to = chunk.indexOf(NEWLINE, from);
      this.#line(chunk.subarray(from, to));
      from = to + 1;
    }
  }

  /** One line on its own, where its length or its encoding is in doubt. */
  #line(bytes: Buffer): void {
    if (bytes.length > this.#maxBytes) {
      this.#unreadable('too long', bytes.length, new SkippedLine(bytes).head);
      return;
    }
    const text = bytes.toString('utf8');
    // A replacement character is legal text when the peer sent one; only the bytes tell.
    if (text.includes(REPLACEMENT) && !isUtf8(bytes))
      this.#unreadable('not UTF-8', bytes.length, headOf(bytes, HEAD_BYTES));
    else this.#deliver(text);
  }

  #unreadable(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void {
    this.#atStart = false;
    this.#options.onUnreadable(reason, bytes, head);
  }

  #deliver(text: string): void {
    const from = this.#atStart && text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0;
    this.#atStart = false;
    const to = text.charCodeAt(text.length - 1) === CARRIAGE_RETURN ? text.length - 1 : text.length;
    if (from < to) this.#options.onLine(text.slice(from, to));
  }
}

/** What is read of a line that is too long. */
class SkippedLine {
  bytes = 0;
  #start = '';
  readonly #envelope = new MessageEnvelope();
  readonly #decoder = new TextDecoder();

  constructor(start: Buffer) {
    this.push(start);
  }

  push(bytes: Buffer): void {
    this.#start += headOf(bytes, HEAD_BYTES - this.bytes);
    this.bytes += bytes.length;
    if (!this.#envelope.done) this.#envelope.push(this.#decoder.decode(bytes, { stream: true }));
  }

  get head(): string {
    return this.#envelope.text() ?? this.#start;
  }
}

function headOf(bytes: Buffer, length: number): string {
  return bytes.toString('utf8', 0, Math.max(0, Math.min(bytes.length, length)));
}
