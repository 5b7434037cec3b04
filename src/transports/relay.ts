/**
 * What a server and a relay of its connection (`troupe run`, `troupe attach`) tell each other, between the messages of the client.
 *
 * A relay greets the server with its first line. The server answers with its limit and its repeatable tools, and from then on reports
 * each line that it rejects. A client that is no relay sends no greeting, and gets none of this.
 */
import { isRequestId, type RequestId } from '../protocol/jsonrpc.ts';

/** Begins each such line: no JSON text begins with this character. */
const MARK = '\u0001';

/** What a relay tells its server. */
export type RelayMail =
  | { readonly type: 'hello' }
  /** The relay skipped a line of the client, which begins with `head`. The server answers as if it had skipped the line itself. */
  | {
      readonly type: 'unreadable';
      readonly reason: 'too long' | 'not UTF-8';
      readonly bytes: number;
      readonly head: string;
    };

/** What a server tells its relay. */
export type RelayReport =
  /** Longest line of the client that the server accepts, in bytes. */
  | { readonly type: 'limit'; readonly maxMessageBytes: number }
  /** The tools that may be called twice, in place of those of the last such line. */
  | { readonly type: 'repeatable'; readonly tools: readonly string[] }
  /**
   * The server rejects a line of the client, and runs nothing of it; or of a batch, one request. Precedes the error.
   * `line` counts the lines of the client on this connection, from 1, with those that were skipped; `id` is that of the error, undefined if it has none.
   */
  | { readonly type: 'rejected'; readonly line: number; readonly id: RequestId | undefined };

/** True for a line that is no message of the client or to it. */
export function isAside(line: string): boolean {
  return line.startsWith(MARK);
}

/** Where in a line such mail begins, as behind other output without a newline; -1 if it has none. */
export function asideStart(line: string): number {
  return line.indexOf(MARK);
}

/** The mail as a line, without its line end. */
export function asideOf(mail: RelayMail | RelayReport): string {
  return MARK + wordsOf(mail).map(encodeURIComponent).join(' ');
}

function wordsOf(mail: RelayMail | RelayReport): readonly (string | number)[] {
  switch (mail.type) {
    case 'hello':
      return ['hello'];
    case 'unreadable':
      return ['unreadable', mail.reason, mail.bytes, mail.head.toWellFormed()];
    case 'limit':
      return ['limit', mail.maxMessageBytes];
    case 'repeatable':
      return ['repeatable', ...mail.tools.map((name) => name.toWellFormed())];
    case 'rejected':
      return ['rejected', mail.line, ...idWords(mail.id)];
  }
}

/** 1 and "1" are two ids. */
function idWords(id: RequestId | undefined): readonly (string | number)[] {
  if (id === undefined) return [];
  return typeof id === 'string' ? ['string', id.toWellFormed()] : ['number', id];
}

/** @returns undefined for a line that a relay does not send */
export function readRelayMail(line: string): RelayMail | undefined {
  const [name, reason, count, head = ''] = wordsIn(line);
  if (name === 'hello') return { type: 'hello' };
  const bytes = Number(count);
  if (name !== 'unreadable' || !Number.isSafeInteger(bytes) || bytes < 0) return undefined;
  return reason === 'too long' || reason === 'not UTF-8' ? { type: 'unreadable', reason, bytes, head } : undefined;
}

/** @returns undefined for a line that a server does not send */
export function readServerMail(line: string): RelayReport | undefined {
  const [name, ...words] = wordsIn(line);
  if (name === 'repeatable') return { type: 'repeatable', tools: words };
  const number = Number(words[0]);
  if (!Number.isSafeInteger(number) || number < 1) return undefined;
  if (name === 'limit') return { type: 'limit', maxMessageBytes: number };
  if (name !== 'rejected') return undefined;
  const [, kind, text = ''] = words;
  if (kind === undefined) return { type: 'rejected', line: number, id: undefined };
  const id = kind === 'number' ? Number(text) : text;
  return isRequestId(id) ? { type: 'rejected', line: number, id } : undefined;
}

function wordsIn(line: string): readonly string[] {
  if (!isAside(line)) return [];
  try {
    return line.slice(MARK.length).split(' ').map(decodeURIComponent);
  } catch {
    return [];
  }
}
