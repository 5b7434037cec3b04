/**
 * Reads id and method of a JSON-RPC message whose text is too long or too deep to parse. It accepts the text in pieces,
 * stores nothing but id and method, and needs no more memory for a longer text.
 */

/** Maximum length of an id or method, in UTF-16 units with its quotes. */
const MAX_TOKEN = 1_024;
/** Maximum number of messages that are read from one batch. */
const MAX_MESSAGES = 1_000;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** Excludes the replacement character, which stands for bytes that were not UTF-8. */
const STRING = /^"(?:[ !#-[\]-\uFFFC\uFFFE\uFFFF]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"$/;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const SPACE = 0x20;
const BYTE_ORDER_MARK = 0xfeff;

/** The members that classify a message, as JSON text. */
interface Members {
  jsonrpc?: string;
  id?: string;
  method?: string;
  result?: 'null';
  error?: 'null';
}

/** The next token expected among the members of a message. */
type Expected = 'name' | 'colon' | 'value' | 'comma';

export class MessageEnvelope {
  /** The position in the text, outside values. */
  #place: 'start' | 'batch' | 'message' | 'end' = 'start';
  #isBatch = false;
  /** Nesting depth of open objects and lists inside a value. */
  #inner = 0;
  #expected: Expected = 'name';
  #name = '';
  /** The characters of the current name or value; undefined while skipping. */
  #token: string | undefined;
  #inString = false;
  /** A string continues in the next piece, and the first character of that piece is escaped. */
  #escaping = false;
  /** A number or a JSON literal (`true`, `false`, `null`) continues. */
  #inWord = false;
  #members: Members = {};
  readonly #closed: Members[] = [];

  /** True once the rest of the text is not needed. */
  get done(): boolean {
    return this.#place === 'end';
  }

  /** Processes the next piece of the text, in time linear in its length. */
  push(piece: string): void {
    let at = 0;
    while (at < piece.length && !this.done) {
      if (this.#inString) at = this.#string(piece, at);
      else if (this.#inner > 0) at = this.#nested(piece, at);
      else at = this.#step(piece, at);
    }
  }

  /**
   * The message as JSON text with only `jsonrpc`, `id`, `method`, and `null` for a result or an error; for a batch, a
   * list of such texts. A truncated message counts if it has an id and a method, because the rest cannot change that it
   * is a request.
   *
   * @returns undefined if no message was recognized
   */
  text(): string | undefined {
    const messages = isRequest(this.#members) ? [...this.#closed, this.#members] : this.#closed;
    const texts = messages.map((members) => {
      const pairs = Object.entries(members).map(([name, value]) => `"${name}":${value}`);
      return `{${pairs.join(',')}}`;
    });
    if (texts.length === 0) return undefined;
    return this.#isBatch ? `[${texts.join(',')}]` : texts[0];
  }

  /** Continues inside a string. @returns the position after its end, or the length of the piece */
  #string(piece: string, from: number): number {
    for (let at = piece.indexOf('"', from); at !== -1; at = piece.indexOf('"', at + 1)) {
      if (this.#escapes(piece, from, at)) continue;
      this.#keep(piece, from, at + 1);
      this.#inString = false;
      this.#escaping = false;
      if (this.#inner === 0 && this.#place === 'message') this.#tokenEnds();
      return at + 1;
    }
    this.#escaping = this.#escapes(piece, from, piece.length);
    this.#keep(piece, from, piece.length);
    return piece.length;
  }

  /** True if an odd number of backslashes precedes a position of a string that continues at `from`. */
  #escapes(piece: string, from: number, at: number): boolean {
    let before = at;
    while (before > from && piece.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    const carried = before === from && this.#escaping ? 1 : 0;
    return (at - before + carried) % 2 === 1;
  }

  /** Skips the inside of a value. @returns where the value or the piece ends, or a string begins */
  #nested(piece: string, from: number): number {
    for (let at = from; at < piece.length; at += 1) {
      const code = piece.charCodeAt(at);
      if (code === QUOTE) {
        this.#inString = true;
        return at + 1;
      }
      if (code === OPEN_OBJECT || code === OPEN_LIST) this.#inner += 1;
      else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
        this.#inner -= 1;
        if (this.#inner === 0) return at + 1;
      }
    }
    return piece.length;
  }

  /** Processes one character outside strings and nested values. */
  #step(piece: string, at: number): number {
    const code = piece.charCodeAt(at);
    if (this.#inWord) {
      if (code > SPACE && code !== COMMA && code !== CLOSE_OBJECT && code !== CLOSE_LIST) {
        this.#keep(piece, at, at + 1);
        return at + 1;
      }
      this.#inWord = false;
      this.#tokenEnds();
      return at;
    }
    if (code <= SPACE || code === BYTE_ORDER_MARK) return at + 1;
    if (this.#place === 'message') this.#member(code);
    else if (this.#place === 'batch') this.#between(code);
    else if (code === OPEN_OBJECT) this.#place = 'message';
    else if (code === OPEN_LIST) {
      this.#place = 'batch';
      this.#isBatch = true;
    } else this.#place = 'end';
    return at + 1;
  }

  /** Between the messages of a batch: skips anything that is not a message. */
  #between(code: number): void {
    if (code === OPEN_OBJECT) {
      this.#place = 'message';
      this.#expected = 'name';
    } else if (code === OPEN_LIST) this.#inner = 1;
    else if (code === QUOTE) this.#inString = true;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) this.#place = 'end';
  }

  /** Among the members of a message: invalid JSON ends the reading. */
  #member(code: number): void {
    if (code === CLOSE_OBJECT && (this.#expected === 'name' || this.#expected === 'comma')) {
      this.#closed.push(this.#members);
      this.#members = {};
      this.#place = this.#isBatch && this.#closed.length < MAX_MESSAGES ? 'batch' : 'end';
      return;
    }
    switch (this.#expected) {
      case 'name':
        if (code === QUOTE) this.#tokenBegins('"');
        else this.#place = 'end';
        return;
      case 'colon':
        if (code === COLON) this.#expected = 'value';
        else this.#place = 'end';
        return;
      case 'comma':
        if (code === COMMA) this.#expected = 'name';
        else this.#place = 'end';
        return;
      case 'value':
        return this.#value(code);
    }
  }

  #value(code: number): void {
    const wanted = this.#name === 'jsonrpc' || this.#name === 'id' || this.#name === 'method';
    if (this.#name === 'result' || this.#name === 'error') this.#members[this.#name] = 'null';
    if (code === OPEN_OBJECT || code === OPEN_LIST) {
      this.#inner = 1;
      // The member exists, but its value is not a valid one.
      if (wanted) this.#set('null');
      this.#expected = 'comma';
    } else if (code === QUOTE) this.#tokenBegins(wanted ? '"' : undefined);
    else {
      this.#inWord = true;
      this.#token = wanted ? String.fromCharCode(code) : undefined;
    }
  }

  #tokenBegins(token: string | undefined): void {
    this.#inString = true;
    this.#token = token;
  }

  #keep(piece: string, from: number, to: number): void {
    if (this.#token === undefined) return;
    // Store one character more than the limit, so that a truncated token differs from one that fits exactly.
    this.#token += piece.slice(from, Math.min(to, from + MAX_TOKEN + 1 - this.#token.length));
  }

  /** A name or a value is complete. */
  #tokenEnds(): void {
    const token = this.#token ?? '';
    this.#token = undefined;
    if (this.#expected === 'name') {
      this.#name = token.slice(1, -1);
      this.#expected = 'colon';
      return;
    }
    this.#expected = 'comma';
    if (token === '') return;
    if (token.length <= MAX_TOKEN && (STRING.test(token) || NUMBER.test(token))) this.#set(token);
    // Only the existence of a method matters: a notification gets no response, however long its method is.
    else this.#set(this.#name === 'method' && token.startsWith('"') ? '""' : 'null');
  }

  #set(value: string): void {
    if (this.#name === 'jsonrpc') this.#members.jsonrpc = value;
    else if (this.#name === 'id') this.#members.id = value;
    else if (this.#name === 'method') this.#members.method = value;
  }
}

/** The result of {@link MessageEnvelope.text} for a whole text, or an empty string. */
export function envelopeText(text: string): string {
  const envelope = new MessageEnvelope();
  envelope.push(text);
  return envelope.text() ?? '';
}

/** True if a message is a request regardless of its other members: it has a readable id and a method. */
function isRequest({ id, method }: Members): boolean {
  return id !== undefined && id !== 'null' && method?.startsWith('"') === true;
}
