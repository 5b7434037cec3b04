/** The news that wait for one node, as texts, until the node has received them. Bounded in number and in length. */
import type { LinkNews } from '../../../core/http/other-nodes.ts';
import { newsText } from './link-text.ts';

/** Maximum number of news that wait. */
const MAX_NEWS = 10_000;
/** Maximum number of characters of them. */
const MAX_LENGTH = 16 * 1024 * 1024;
/** Maximum number of characters that are sent at once: in UTF-8, they are fewer than {@link MAX_NEWS_BYTES}. */
const PORTION = 1024 * 1024;
/** Maximum number of bytes of news that a node accepts at once. It depends on no option, which may differ between nodes. */
export const MAX_NEWS_BYTES = 4 * 1024 * 1024;
const MISSED = newsText({ news: 'missed' });

export class NewsQueue {
  #waiting: string[] = [];
  #length = 0;
  /** The first ones, which were sent: they stay until the node has received them. */
  #sent = 0;
  /** True if some were discarded since this was last read. */
  #dropped = false;

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Adds one. Beyond the bounds, the node learns that it has missed some. */
  add(news: LinkNews): void {
    const text = newsText(news);
    const isTooLong = text.length > PORTION;
    if (this.#waiting.length >= MAX_NEWS || this.#length + text.length > MAX_LENGTH) this.#clear();
    else if (!isTooLong) return this.#push(text);
    this.#dropped = true;
    this.#push(MISSED);
    if (!isTooLong) this.#push(text);
  }

  /** Returns the first ones as one text. */
  portion(): string {
    let length = 0;
    this.#sent = 0;
    for (const text of this.#waiting) {
      length += text.length + 1;
      if (length > PORTION && this.#sent > 0) break;
      this.#sent += 1;
    }
    return `[${this.#waiting.slice(0, this.#sent).join()}]`;
  }

  /** The node has received the last portion. */
  received(): void {
    for (const text of this.#waiting.splice(0, this.#sent)) this.#length -= text.length;
    this.#sent = 0;
  }

  /** Returns, once, that news were discarded. */
  takeDropped(): boolean {
    const dropped = this.#dropped;
    this.#dropped = false;
    return dropped;
  }

  #push(text: string): void {
    this.#waiting.push(text);
    this.#length += text.length;
  }

  #clear(): void {
    this.#waiting = [];
    this.#length = 0;
    this.#sent = 0;
  }
}
