/** Reads a stream of server-sent events (WHATWG HTML, "Interpreting an event stream"). */
import { Buffer } from 'node:buffer';
import type { Readable } from 'node:stream';
import { MessageEnvelope } from '../../core/protocol/message-envelope.ts';

export interface EventReaderOptions {
  /** Longest event or line, in bytes of UTF-8. */
  readonly maxBytes: number;
  /** An event with data. `type` is `message` unless the event names another. */
  onEvent(type: string, data: string): void;
  /** An event has ended, with or without data, and the stream has this id since then. */
  onId?(id: string): void;
  /** The delay before the stream is opened again, in milliseconds. */
  onRetry?(ms: number): void;
  /** An event is too long. Without {@link onSkipped}, nothing follows. */
  onOverflow?(): void;
  /**
   * An event that is too long has ended, and the next events follow. The envelope of its message has its id and method, as far as they
   * were read ({@link MessageEnvelope.text}).
   */
  onSkipped?(envelope: string, bytes: number): void;
}

/** An event that is too long, while it is skipped. */
interface SkippedEvent {
  readonly envelope: MessageEnvelope;
  bytes: number;
  /** The field of the line that is read, once the line has shown it. */
  field: 'data' | 'other' | undefined;
}

/**
 * Takes the chunks of one response, cut anywhere. An event that has not ended when the response ends is dropped, unless its message is
 * whole.
 */
export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #decoder = new TextDecoder();
  /** The beginning of a line, in pieces. */
  #pieces: string[] = [];
  #pieceBytes = 0;
  /** The last chunk ended with a carriage return: a line feed belongs to it. */
  #returned = false;
  #type = '';
  #data: string[] = [];
  #dataBytes = 0;
  #skipping: SkippedEvent | undefined;
  #id: string | undefined;
  #failed = false;

  constructor(options: EventReaderOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    if (this.#failed) return;
    const text = this.#decoder.decode(chunk, { stream: true });
    let from = this.#returned && text.startsWith('\n') ? 1 : 0;
    if (text !== '') this.#returned = text.endsWith('\r');
    let feed = text.indexOf('\n', from);
    let carriage = text.indexOf('\r', from);
    while (feed !== -1 || carriage !== -1) {
      const end = carriage === -1 || (feed !== -1 && feed < carriage) ? feed : carriage;
      this.#line(this.#whole(text.slice(from, end)));
      if (this.#failed) return;
      from = end === carriage && feed === end + 1 ? end + 2 : end + 1;
      if (feed !== -1 && feed < from) feed = text.indexOf('\n', from);
      if (carriage !== -1 && carriage < from) carriage = text.indexOf('\r', from);
    }
    if (from < text.length) this.#hold(text.slice(from));
  }

  /** Takes all chunks of a body, and its end. */
  follow(body: Readable): void {
    body.on('data', (chunk: Buffer) => this.push(chunk));
    body.on('end', () => this.end());
  }

  /** The response has ended. Some servers write no empty line after their last event, or no line end at all. */
  end(): void {
    if (this.#failed || this.#skipping) return;
    const begun = this.#whole('');
    if (begun !== '') this.#line(begun);
    if (isWhole(this.#data.join('\n'))) this.#dispatch();
  }

  #hold(piece: string): void {
    if (this.#skipping) return this.#skip(this.#skipping, piece);
    this.#pieces.push(piece);
    this.#pieceBytes += Buffer.byteLength(piece);
    this.#check();
  }

  /** Takes a piece of a line of an event that is too long. Only the beginning of the line is held, until it shows the field. */
  #skip(skipped: SkippedEvent, piece: string): void {
    if (skipped.field !== undefined) return readSkipped(skipped, piece);
    this.#pieces.push(piece);
    const line = this.#pieces.join('');
    if (line.length < DATA.length) return;
    this.#pieces = [];
    skipped.field = line.startsWith(DATA) ? 'data' : 'other';
    readSkipped(skipped, line.slice(DATA.length));
  }

  #whole(rest: string): string {
    if (this.#pieces.length === 0) return rest;
    const line = this.#pieces.join('') + rest;
    this.#pieces = [];
    this.#pieceBytes = 0;
    return line;
  }

  #line(line: string): void {
    const skipped = this.#skipping;
    if (skipped?.field !== undefined) {
      readSkipped(skipped, line);
      skipped.field = undefined;
      return;
    }
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
    switch (field) {
      case 'data':
        if (skipped) return readData(skipped, value);
        this.#data.push(value);
        this.#dataBytes += Buffer.byteLength(value) + 1;
        return this.#check();
      case 'event':
        this.#type = value;
        return;
      case 'id':
        if (!value.includes('\0')) this.#id = value;
        return;
      case 'retry':
        if (/^\d+$/.test(value)) this.#options.onRetry?.(Number(value));
        return;
    }
  }

  #dispatch(): void {
    const { onEvent, onId, onSkipped } = this.#options;
    const skipped = this.#skipping;
    this.#skipping = undefined;
    const type = this.#type === '' ? 'message' : this.#type;
    const data = this.#data.join('\n');
    this.#type = '';
    this.#data = [];
    this.#dataBytes = 0;
    if (this.#id !== undefined) onId?.(this.#id);
    this.#id = undefined;
    if (skipped) return onSkipped?.(skipped.envelope.text() ?? '', skipped.bytes);
    if (data !== '') onEvent(type, data);
  }

  #check(): void {
    const { maxBytes, onOverflow, onSkipped } = this.#options;
    if (this.#pieceBytes + this.#dataBytes <= maxBytes) return;
    const data = this.#data.join('\n');
    const begun = this.#whole('');
    this.#data = [];
    this.#dataBytes = 0;
    onOverflow?.();
    if (!onSkipped) {
      this.#failed = true;
      return;
    }
    const skipped: SkippedEvent = { envelope: new MessageEnvelope(), bytes: 0, field: undefined };
    this.#skipping = skipped;
    readData(skipped, data);
    if (begun !== '') this.#skip(skipped, begun);
  }
}

/** True for the text of an object up to its last brace. */
function isWhole(text: string): boolean {
  const envelope = new MessageEnvelope();
  envelope.push(text);
  return envelope.done && text.trimStart().startsWith('{');
}

/** Reads a piece of the line whose field is known. */
function readSkipped(skipped: SkippedEvent, text: string): void {
  if (skipped.field === 'data') readData(skipped, text);
}

function readData(skipped: SkippedEvent, text: string): void {
  skipped.bytes += Buffer.byteLength(text);
  skipped.envelope.push(text);
}

const SPACE = 0x20;
/** The beginning of a line with data. A space before the data is white space in front of JSON. */
const DATA = 'data:';
