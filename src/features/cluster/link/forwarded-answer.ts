/** The response to an exchange that this node has forwarded, as it arrives. */

import type { Forwarding, ForwardListener, LinkFailure } from '../../../core/http/other-nodes.ts';
import { type LinkChannel, RECORD } from './link-channel.ts';
import { ReadCredit } from './link-credit.ts';
import type { HeadReader, ResponseHead } from './link-text.ts';

/** The link by which it arrives. */
export interface AnsweredBy {
  readonly channel: LinkChannel;
  readonly heads: HeadReader<ResponseHead>;
  /** Nothing more arrives. */
  ended(answer: ForwardedAnswer): void;
}

export class ForwardedAnswer implements Forwarding {
  readonly number: number;
  readonly #by: AnsweredBy;
  readonly #listener: ForwardListener;
  /** The head of a response that is one body, and the body as far as it has arrived. */
  #whole: ResponseHead | undefined;
  #text = '';
  #begun = false;
  #over = false;
  #credit: ReadCredit | undefined;
  /** Bytes that the client has not read; undefined while it reads. */
  #unread: number | undefined;

  constructor(number: number, by: AnsweredBy, listener: ForwardListener) {
    this.number = number;
    this.#by = by;
    this.#listener = listener;
  }

  /** @returns false for a record that cannot follow those before */
  record(kind: number, content: Buffer, last: boolean): boolean {
    switch (kind) {
      case RECORD.whole:
      case RECORD.begun:
        return this.#head(kind, content.toString(), last);
      case RECORD.body:
        if (this.#whole) this.#piece(this.#whole, content, last);
        else if (this.#begun) this.#stream(content, last);
        else return false;
        return true;
      case RECORD.reset: {
        const reason = content.toString();
        this.fail(reason === 'not mine' || (reason === 'full' && !this.#begun) ? reason : 'lost');
        return true;
      }
      default:
        return true;
    }
  }

  #head(kind: number, text: string, last: boolean): boolean {
    const head = this.#by.heads.read(text);
    if (!head || this.#whole || this.#begun) return false;
    if (kind === RECORD.begun) {
      this.#begun = true;
      this.#listener.begun(head.status, head.headers);
    } else if (last) this.#answered(head, undefined);
    else this.#whole = head;
    return true;
  }

  #piece(head: ResponseHead, content: Buffer, last: boolean): void {
    const text = content.toString();
    if (last) return this.#answered(head, this.#text + text);
    this.#text += text;
    this.#read(content.length);
  }

  #answered({ status, headers }: ResponseHead, body: string | undefined): void {
    this.#over = true;
    this.#by.ended(this);
    this.#listener.whole(status, headers, body);
  }

  #stream(content: Buffer, last: boolean): void {
    if (content.length > 0) {
      const reads = this.#listener.text(content.toString());
      if (this.#unread !== undefined || !reads) this.#unread = (this.#unread ?? 0) + content.length;
      else if (!last) this.#read(content.length);
    }
    if (!last) return;
    this.#over = true;
    this.#by.ended(this);
    this.#listener.ended();
  }

  #read(bytes: number): void {
    this.#credit ??= new ReadCredit(this.#by.channel, this.number);
    this.#credit.read(bytes);
  }

  resume(): void {
    const unread = this.#unread;
    if (unread === undefined || this.#over) return;
    this.#unread = undefined;
    this.#read(unread);
  }

  cancel(): void {
    if (this.#over) return;
    this.#by.channel.add(RECORD.reset, this.number);
    this.fail('lost');
  }

  /** No more of it arrives. @param failure that of a response that has not begun */
  fail(failure: Exclude<LinkFailure, 'cut'>): void {
    if (this.#over) return;
    this.#over = true;
    this.#by.ended(this);
    this.#listener.failed(this.#begun ? 'cut' : failure);
  }
}
