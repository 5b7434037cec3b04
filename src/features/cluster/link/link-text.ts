/** The texts that nodes exchange: the heads of exchanges and responses, and news. The only file that parses them. */

import type { Headers } from '../../../core/http/http-message.ts';
import type { ForwardedExchange, LinkNews } from '../../../core/http/other-nodes.ts';
import { isAuth } from '../../../core/messages/auth.ts';
import { isObject } from '../../../core/protocol/json.ts';

/** An exchange without its body. */
export type ExchangeHead = Omit<ForwardedExchange, 'text'>;

/** The status and the headers of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly headers: Headers;
}

/** Heads that are remembered, and the length up to which. */
const REMEMBERED = 512;
const MAX_REMEMBERED = 4_096;

/** Parses heads. A client sends the same head with each request of a session: it is parsed once. */
export class HeadReader<T extends object> {
  readonly #known = new Map<string, T>();
  readonly #isHead: (value: unknown) => value is T;

  constructor(isHead: (value: unknown) => value is T) {
    this.#isHead = isHead;
  }

  /** @returns the head, which is frozen; undefined for a text that is none */
  read(text: string): T | undefined {
    const known = this.#known.get(text);
    if (known) return known;
    const head = parsed(text);
    if (!this.#isHead(head)) return undefined;
    freeze(head);
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    if (text.length <= MAX_REMEMBERED) this.#known.set(text, head);
    return head;
  }
}

/** Two requests share one head: a handler must not change the claims of the other. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const each of Object.values(value)) freeze(each);
  Object.freeze(value);
}

export function exchangeHeads(): HeadReader<ExchangeHead> {
  return new HeadReader(isHead);
}

export function responseHeads(): HeadReader<ResponseHead> {
  return new HeadReader(isResponseHead);
}

export function headText(head: ExchangeHead | ResponseHead): string {
  return JSON.stringify(head);
}

function isResponseHead(head: unknown): head is ResponseHead {
  if (!isObject(head) || !isObject(head.headers)) return false;
  const { status, headers } = head;
  return (
    typeof status === 'number' &&
    Object.values(headers).every((value) =>
      Array.isArray(value) ? value.every((each) => typeof each === 'string') : typeof value === 'string',
    )
  );
}

function isHead(head: unknown): head is ExchangeHead {
  if (!isObject(head) || !isObject(head.headers)) return false;
  const { endpoint, method, url, auth, remoteAddress, cell, deadlineMs } = head;
  return (
    [endpoint, cell, deadlineMs].every((each) => typeof each === 'number' && Number.isFinite(each)) &&
    [method, url, ...Object.values(head.headers)].every((each) => typeof each === 'string') &&
    (remoteAddress === undefined || typeof remoteAddress === 'string') &&
    (auth === undefined || isAuth(auth))
  );
}

export function newsText(news: LinkNews): string {
  return JSON.stringify(news);
}

/** News of a kind that a later version has added is left out. */
export function newsIn(text: string): readonly LinkNews[] {
  const list = parsed(text);
  return Array.isArray(list) ? list.filter(isNews) : [];
}

function isNews(value: unknown): value is LinkNews {
  if (!isObject(value)) return false;
  const { news, topics, changes, endpoint, amounts } = value;
  switch (news) {
    case 'watch':
    case 'unwatch':
      return Array.isArray(topics) && topics.every((topic) => typeof topic === 'string');
    case 'changed':
      return Array.isArray(changes) && changes.every(isChange);
    case 'missed':
      return true;
    case 'spent':
    case 'left':
      return (
        typeof endpoint === 'number' &&
        isObject(amounts) &&
        Object.values(amounts).every((amount) => typeof amount === 'number')
      );
    default:
      return false;
  }
}

function isChange(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { type, uri, owner, what } = value;
  if (type === 'list changed') return what === 'tools' || what === 'resources' || what === 'prompts';
  return type === 'resource updated' && typeof uri === 'string' && (owner === undefined || typeof owner === 'string');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
