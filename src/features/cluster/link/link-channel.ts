/**
 * One end of the long HTTP/2 stream of a link: joins the records of a turn into one signed text, and cuts the texts of the
 * other end into records.
 */
import type { Duplex } from 'node:stream';
import { type LinkSignature, SIGNATURE_BYTES } from './link-handshake.ts';

/** The kinds of records. An unknown kind, of a later version, is left out. */
export const RECORD = {
  /** The head of an exchange; its body follows. */
  exchange: 1,
  /** News follow as a body. */
  news: 2,
  /** The head of a response that is one body, which follows. */
  whole: 3,
  /** The head of a response that is written in pieces, which follow. */
  begun: 4,
  /** A piece of what the last head has announced. */
  body: 5,
  /** The number of bytes that the other end may send in addition. */
  credit: 6,
  /** Ends an exchange before its end; the reason. */
  reset: 7,
  /** The news have arrived. */
  received: 8,
  /** The number of the last exchange that is served: this end leaves. */
  leaving: 9,
} as const;

/** Unread bytes of a link: each exchange has a credit of its own, and none may stop the others. */
export const LINK_WINDOW = 1024 * 1024;
/** The flag of a record that is the last of its direction. */
const LAST = 0x80;
/** The length of a text in front of it; and kind, exchange and length in front of the content of a record. */
const PREFIX = 4;
const NUMBER_BYTES = 6;
const RECORD_BYTES = 1 + NUMBER_BYTES + 4;
/** Maximum length of the head of an exchange or of a response, in bytes. */
export const MAX_HEAD_BYTES = 128 * 1024;
/** Maximum length of a text: several records, or one head. */
const MAX_TEXT = 256 * 1024;
/** Bytes that are allocated at once for the next texts. */
const SLAB_BYTES = 64 * 1024;
/** Maximum number of characters in a piece of a body. */
export const PIECE = 16_384;
/** Unsent bytes above which the other end receives too slowly. */
const MAX_UNSENT = 8 * 1024 * 1024;

/** Receives what one end of a link reports. */
export interface LinkRecords {
  /** @param content the content in UTF-8, valid during this call */
  record(kind: number, number: number, content: Buffer, last: boolean): void;
  /** The records of this turn are on their way. */
  flushed(): void;
  /** A text was changed, left out or repeated, or is none: nothing of this connection can be trusted. */
  broken(): void;
}

interface LinkChannelOptions {
  readonly stream: Duplex;
  /** Undefined over TLS: texts are not signed. */
  readonly sends: LinkSignature | undefined;
  readonly receives: LinkSignature | undefined;
  readonly records: LinkRecords;
}

export class LinkChannel {
  readonly #stream: Duplex;
  readonly #sends: LinkSignature | undefined;
  readonly #receives: LinkSignature | undefined;
  readonly #records: LinkRecords;
  /** The memory of the next texts; the begin of the text that is being written, and its end so far. */
  #slab = Buffer.alloc(0);
  #start = 0;
  #at = PREFIX;
  #scheduled = false;
  /** Received bytes of a text that has not arrived completely, their number, and the number of bytes to wait for. */
  #chunks: Buffer[] = [];
  #length = 0;
  #needed = PREFIX;

  constructor({ stream, sends, receives, records }: LinkChannelOptions) {
    this.#stream = stream;
    this.#sends = sends;
    this.#receives = receives;
    this.#records = records;
    stream.on('data', (chunk: Buffer) => this.#read(chunk));
  }

  /** True while the other end receives too slowly. */
  get full(): boolean {
    return this.#stream.writableLength > MAX_UNSENT;
  }

  /**
   * Adds a record to the text of this turn.
   *
   * @param content at most {@link MAX_HEAD_BYTES} in UTF-8
   * @returns the length of the content in bytes
   */
  add(kind: number, number: number, content = '', last = true): number {
    const most = content.length > PIECE ? Buffer.byteLength(content) : 3 * content.length;
    this.#room(RECORD_BYTES + most);
    const [slab, at] = [this.#slab, this.#at];
    const length = content === '' ? 0 : slab.write(content, at + RECORD_BYTES);
    slab[at] = last ? kind | LAST : kind;
    slab.writeUIntBE(number, at + 1, NUMBER_BYTES);
    slab.writeUInt32BE(length, at + 1 + NUMBER_BYTES);
    this.#at = at + RECORD_BYTES + length;
    if (!this.#scheduled) {
      this.#scheduled = true;
      process.nextTick(this.#flush);
    }
    return length;
  }

  /** Sends the text of this turn, and ends this direction. */
  end(): void {
    this.#seal();
    this.#stream.end();
  }

  /** Reads nothing until the other end has received what was sent. */
  pause(): void {
    if (this.#stream.isPaused()) return;
    this.#stream.pause();
    this.#stream.once('drain', () => this.#stream.resume());
  }

  #room(bytes: number): void {
    if (this.#slab.length - this.#at >= bytes + SIGNATURE_BYTES) return;
    this.#seal();
    this.#slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, PREFIX + bytes + SIGNATURE_BYTES));
    this.#start = 0;
    this.#at = PREFIX;
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    this.#seal();
    this.#records.flushed();
  };

  /** Signs and sends the text that has been written. */
  #seal(): void {
    const [slab, start, sends] = [this.#slab, this.#start, this.#sends];
    const first = start + PREFIX;
    let end = this.#at;
    if (end === first) return;
    slab.writeUInt32BE(end - first, start);
    if (sends) end += sends.sign(slab.subarray(first, end)).copy(slab, end);
    this.#start = end;
    this.#at = end + PREFIX;
    if (this.#stream.writable) this.#stream.write(slab.subarray(start, end));
  }

  #read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return;
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#length);
    const receives = this.#receives;
    let at = 0;
    for (;;) {
      this.#needed = PREFIX;
      if (bytes.length - at < PREFIX) break;
      const first = at + PREFIX;
      const end = first + bytes.readUInt32BE(at);
      if (end - first > MAX_TEXT) return this.#records.broken();
      const next = receives ? end + SIGNATURE_BYTES : end;
      this.#needed = next - at;
      if (next > bytes.length) break;
      if (receives && !receives.matches(bytes.subarray(first, end), bytes.subarray(end, next)))
        return this.#records.broken();
      if (!this.#cut(bytes, first, end)) return this.#records.broken();
      at = next;
    }
    this.#chunks = at === bytes.length ? [] : [bytes.subarray(at)];
    this.#length = bytes.length - at;
  }

  /** Passes on the records of a text. @returns false if the text is none */
  #cut(bytes: Buffer, first: number, end: number): boolean {
    let at = first;
    while (at < end) {
      const content = at + RECORD_BYTES;
      if (content > end) return false;
      const kind = bytes[at] ?? 0;
      const number = bytes.readUIntBE(at + 1, NUMBER_BYTES);
      at = content + bytes.readUInt32BE(at + 1 + NUMBER_BYTES);
      if (at > end) return false;
      // The connection may have been closed meanwhile.
      if (this.#stream.destroyed) return true;
      this.#records.record(kind & ~LAST, number, bytes.subarray(content, at), (kind & LAST) !== 0);
    }
    return true;
  }
}
