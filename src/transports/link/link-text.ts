/** The texts that nodes exchange: the head and the body of an exchange, and news. The only file that parses them. */
import { isAuth } from '../../messages/auth.ts';
import { isObject } from '../../protocol/json.ts';
import type { ForwardedExchange, LinkNews } from './link-port.ts';

/** The length of the head in front of it, in bytes. */
const PREFIX = 4;
/** Maximum length of a head, in bytes: a principal with its claims, and the headers of a request. */
export const MAX_HEAD_BYTES = 128 * 1024;
/** Bytes beside the body of the longest message. */
export const EXTRA_BYTES = PREFIX + MAX_HEAD_BYTES;

/** The bytes of an exchange: the length of its head, the head as JSON, the body. */
export function exchangeBytes({ text, ...head }: ForwardedExchange): Buffer {
  const json = JSON.stringify(head);
  const length = Buffer.byteLength(json);
  const bytes = Buffer.allocUnsafe(PREFIX + length + Buffer.byteLength(text));
  bytes.writeUInt32BE(length);
  bytes.write(json, PREFIX);
  bytes.write(text, PREFIX + length);
  return bytes;
}

/** @returns undefined for bytes that are no exchange */
export function exchangeIn(bytes: Buffer): ForwardedExchange | undefined {
  if (bytes.length < PREFIX) return undefined;
  const end = PREFIX + bytes.readUInt32BE();
  if (end > bytes.length || end > EXTRA_BYTES) return undefined;
  const head = parsed(bytes.toString('utf8', PREFIX, end));
  return isHead(head) ? { ...head, text: bytes.toString('utf8', end) } : undefined;
}

function isHead(head: unknown): head is Omit<ForwardedExchange, 'text'> {
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
