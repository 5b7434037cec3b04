/** Flow control of one exchange: its sender has a credit of bytes, which its receiver renews as it reads. */
import { type LinkChannel, PIECE, RECORD } from './link-channel.ts';

/** Unread bytes of one direction of an exchange: a client that reads slowly slows its owner, and no other exchange. */
const CREDIT = 64 * 1024;
/** Read bytes that are reported together. */
const REPORTED = CREDIT / 2;

/** The body that one end sends, in pieces of valid UTF-8. */
export class CreditedBody {
  readonly #channel: LinkChannel;
  readonly #number: number;
  #credit = CREDIT;
  /** Texts without credit; the characters of the first one that were sent; and the number of all unsent characters. */
  #waiting: string[] = [];
  #sent = 0;
  #unsent = 0;
  #last = false;

  constructor(channel: LinkChannel, number: number) {
    this.#channel = channel;
    this.#number = number;
  }

  /** Number of characters that wait for credit. */
  get unsent(): number {
    return this.#unsent;
  }

  /** True if everything was sent, including the end. */
  get ended(): boolean {
    return this.#last && this.#waiting.length === 0;
  }

  /** @param last true for the end of the body */
  send(text: string, last: boolean): void {
    this.#last = last;
    if (this.#waiting.length === 0 && text.length <= PIECE && (this.#credit > 0 || text === '')) {
      this.#credit -= this.#channel.add(RECORD.body, this.#number, text, last);
      return;
    }
    this.#waiting.push(text);
    this.#unsent += text.length;
    this.#send();
  }

  /** The other end has read so many bytes. */
  renew(bytes: number): void {
    this.#credit += bytes;
    this.#send();
  }

  #send(): void {
    for (let [text] = this.#waiting; text !== undefined && this.#credit > 0; [text] = this.#waiting) {
      const end = pieceEnd(text, this.#sent);
      const whole = end === text.length;
      const last = this.#last && whole && this.#waiting.length === 1;
      this.#credit -= this.#channel.add(RECORD.body, this.#number, text.slice(this.#sent, end), last);
      this.#unsent -= end - this.#sent;
      this.#sent = whole ? 0 : end;
      if (whole) this.#waiting.shift();
    }
  }
}

/** The end of a piece of a text. It separates no surrogate pair. */
function pieceEnd(text: string, start: number): number {
  const end = start + PIECE;
  if (end >= text.length) return text.length;
  const unit = text.charCodeAt(end - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? end - 1 : end;
}

/** The body that one end reads. */
export class ReadCredit {
  readonly #channel: LinkChannel;
  readonly #number: number;
  #read = 0;

  constructor(channel: LinkChannel, number: number) {
    this.#channel = channel;
    this.#number = number;
  }

  /** So many bytes were read: the other end may send as many. */
  read(bytes: number): void {
    this.#read += bytes;
    if (this.#read < REPORTED) return;
    this.#channel.add(RECORD.credit, this.#number, String(this.#read));
    this.#read = 0;
  }
}
