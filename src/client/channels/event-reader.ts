/** Reads a stream of server-sent events (WHATWG HTML, "Interpreting an event stream"). */

interface EventReaderOptions {
  /** Longest event or line, in characters. */
  readonly maxLength: number;
  /** An event with data. `type` is `message` unless the event names another. */
  onEvent(type: string, data: string): void;
  /** An event has ended, with or without data, and the stream has this id since then. */
  onId?(id: string): void;
  /** The delay before the stream is opened again, in milliseconds. */
  onRetry?(ms: number): void;
  /** An event is too long. Nothing follows. */
  onOverflow(): void;
}

/** Takes the chunks of one response, cut anywhere. An event that has not ended when the response ends is dropped. */
export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #decoder = new TextDecoder();
  /** The beginning of a line, in pieces. */
  #pieces: string[] = [];
  #pieceLength = 0;
  /** The last chunk ended with a carriage return: a line feed belongs to it. */
  #returned = false;
  #type = '';
  #data: string[] = [];
  #dataLength = 0;
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

  #hold(piece: string): void {
    this.#pieces.push(piece);
    this.#pieceLength += piece.length;
    this.#check();
  }

  #whole(rest: string): string {
    if (this.#pieces.length === 0) return rest;
    const line = this.#pieces.join('') + rest;
    this.#pieces = [];
    this.#pieceLength = 0;
    return line;
  }

  #line(line: string): void {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
    switch (field) {
      case 'data':
        this.#data.push(value);
        this.#dataLength += value.length + 1;
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
    const { onEvent, onId } = this.#options;
    const type = this.#type === '' ? 'message' : this.#type;
    const data = this.#data.join('\n');
    this.#type = '';
    this.#data = [];
    this.#dataLength = 0;
    if (this.#id !== undefined) onId?.(this.#id);
    this.#id = undefined;
    if (data !== '') onEvent(type, data);
  }

  #check(): void {
    if (this.#pieceLength + this.#dataLength <= this.#options.maxLength) return;
    this.#failed = true;
    this.#pieces = [];
    this.#data = [];
    this.#options.onOverflow();
  }
}

const SPACE = 0x20;
