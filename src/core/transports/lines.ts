/**
 * Newline framing for input: converts chunks of bytes into whole lines of text. It uses no stream and no clock, and
 * inspects only lines that it skips.
 */
import { Buffer, constants, isUtf8 } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import { MessageEnvelope } from '../protocol/message-envelope.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = 0xfeff;
const REPLACEMENT = '\uFFFD';
const NO_BYTES = Buffer.alloc(0);

/** Number of bytes stored from the start of a skipped line. */
export const HEAD_BYTES = 1_024;

interface LineReaderOptions {
  /**
   * Maximum length of a line, in bytes without its newline (a carriage return counts). From 1 to the maximum string
   * length of this Node.
   */
  readonly maxBytes: number;
  /** Receives each line, in order, without its line end. Never empty. Must not call `push`. */
  onLine(text: string): void;
  /**
   * Reports each skipped line after its last byte. `bytes` is its length. For a line that is too long, `head` contains
   * its id and method, wherever they stand ({@link MessageEnvelope.text}); otherwise its first 1,024 bytes as text. The
   * next line is read as usual.
   */
  onUnreadable(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void;
}

/**
 * Splits a stream of bytes into lines (MCP basic/transports/stdio: one message per line, UTF-8). Accepts CRLF, skips
 * empty lines, drops a byte order mark and white space around a line. Holds at most `maxBytes` of an unfinished line (briefly one
 * and a half times that, while its buffer grows).
 *
 * The reader cannot pause and need not: after the stream is paused, the lines of the current chunk still arrive, and a pipe or
 * socket limits a chunk to 64 KiB.
 *
 * @throws RangeError if `maxBytes` is not a whole number within its limits
 * @example
 * const reader = new LineReader({ maxBytes: 4_194_304, onLine: (text) => console.error(text), onUnreadable: () => {}
 * });
 * input.on('data', (chunk) => reader.push(chunk)).on('end', () => reader.end());
 */
export class LineReader {
  readonly #options: LineReaderOptions;
  #maxBytes = 0;
  /** The start of an unfinished line; the first `#heldLength` bytes are valid. */
  #held: Buffer = NO_BYTES;
  #heldLength = 0;
  /** A line that is too long, while it is skipped. */
  #skipping: SkippedLine | undefined;

  constructor(options: LineReaderOptions) {
    this.#options = options;
    this.maxBytes = options.maxBytes;
  }

  /** Changes the maximum length of a line; an unfinished line counts, too. */
  set maxBytes(maxBytes: number) {
    if (!Number.isInteger(maxBytes) || maxBytes < 1 || maxBytes > constants.MAX_STRING_LENGTH) {
      throw new RangeError(
        `maxBytes: expected a whole number from 1 to ${constants.MAX_STRING_LENGTH}, got ${maxBytes}`,
      );
    }
    this.#maxBytes = maxBytes;
  }

  /** Number of bytes held from an unfinished line. */
  get heldBytes(): number {
    return this.#heldLength;
  }

  /** Processes the next bytes and delivers every completed line. Does not retain the chunk. */
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

  /** End of input: delivers a last line that lacks its newline. */
  end(): void {
    if (this.#heldLength > 0 || this.#skipping) this.#finish();
  }

  /**
   * Copies the start of a line into a buffer that doubles, so that many small chunks cost neither n² copies nor n
   * objects.
   */
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
    this.#held = NO_BYTES;
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
      // A newline byte is never part of a longer UTF-8 sequence, so decoding once and splitting the text gives the same
      // lines.
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

  /** Processes a single line whose length or encoding is in doubt. */
  #line(bytes: Buffer): void {
    if (bytes.length > this.#maxBytes) {
      this.#unreadable('too long', bytes.length, new SkippedLine(bytes).head);
      return;
    }
    const text = bytes.toString('utf8');
    // A replacement character is legal if the peer sent one; only the bytes show the difference.
    if (text.includes(REPLACEMENT) && !isUtf8(bytes))
      this.#unreadable('not UTF-8', bytes.length, headOf(bytes, HEAD_BYTES));
    else this.#deliver(text);
  }

  #unreadable(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void {
    this.#options.onUnreadable(reason, bytes, head);
  }

  #deliver(given: string): void {
    const to = given.charCodeAt(given.length - 1) === CARRIAGE_RETURN ? given.length - 1 : given.length;
    if (to === 0) return;
    const line = to === given.length ? given : given.slice(0, to);
    // Nearly all lines begin with a message.
    if (isBracket(line.charCodeAt(0))) return this.#options.onLine(line);
    const bare = line.replace(NOISE, '');
    // A line that is no message, such as one of a log, stays as it is.
    if (isBracket(bare.charCodeAt(0))) this.#options.onLine(bare.replace(NOISE_AT_END, ''));
    else {
      const text = line.charCodeAt(0) === BYTE_ORDER_MARK ? line.slice(1) : line;
      if (text !== '') this.#options.onLine(text);
    }
  }
}

/**
 * The noise that programs and terminals write around a message: white space, byte order marks (RFC 8259 section 8.1 lets readers ignore
 * them), zeros, and escape sequences that set a colour or a mode (ECMA-48, CSI).
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it finds
const NOISE = /^(?:[\s\uFEFF\0]|\x1b\[[0-9;?]*[A-Za-z])+/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it finds
const NOISE_AT_END = /(?:[\s\uFEFF\0]|\x1b\[[0-9;?]*[A-Za-z]){1,64}$/;

/** True for the first character of an object, or of a batch. */
function isBracket(code: number): boolean {
  return code === 0x7b || code === 0x5b;
}

/** Reads the envelope of a line that is too long. */
class SkippedLine {
  bytes = 0;
  #start = '';
  readonly #envelope = new MessageEnvelope();
  /** For a text of many megabytes it takes a quarter of the time that a `TextDecoder` takes. */
  readonly #decoder = new StringDecoder('utf8');

  constructor(start: Buffer) {
    this.push(start);
  }

  push(bytes: Buffer): void {
    this.#start += headOf(bytes, HEAD_BYTES - this.bytes);
    this.bytes += bytes.length;
    if (!this.#envelope.done) this.#envelope.push(this.#decoder.write(bytes));
  }

  get head(): string {
    return this.#envelope.text() ?? this.#start;
  }
}

function headOf(bytes: Buffer, length: number): string {
  return bytes.toString('utf8', 0, Math.max(0, Math.min(bytes.length, length)));
}
