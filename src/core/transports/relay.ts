/**
 * The protocol between a server and a relay of its connection (`troupe run`, `troupe attach`): lines between the client's messages.
 *
 * A relay greets the server with its first line. The server answers with its limit and its repeatable tools, and from then on reports
 * each line that it rejects. A client without a relay sends no greeting and receives none of these lines.
 */
import { isRequestId, type RequestId } from '../protocol/jsonrpc.ts';

/** The first character of each such line: no JSON text begins with it. */
const MARK = '\u0001';

/** A line from a relay to its server. */
export type RelayMail =
  | { readonly type: 'hello' }
  /** The relay has skipped a line of the client that begins with `head`. The server answers as if it had skipped the line itself. */
  | {
      readonly type: 'unreadable';
      readonly reason: 'too long' | 'not UTF-8';
      readonly bytes: number;
      readonly head: string;
    };

/** A line from a server to its relay. */
export type RelayReport =
  /** The longest line of the client that the server accepts, in bytes. */
  | { readonly type: 'limit'; readonly maxMessageBytes: number }
  /** The tools that are safe to call twice. Replaces the previous list. */
  | { readonly type: 'repeatable'; readonly tools: readonly string[] }
  /**
   * The server rejects a line of the client, or one request of a batch, and runs nothing of it. Precedes the error.
   * `line` counts the lines of the client on this connection from 1, including skipped lines. `id` is the id of the error, if any.
   */
  | { readonly type: 'rejected'; readonly line: number; readonly id: RequestId | undefined };

/** True for a line of the relay protocol. */
export function isAside(line: string): boolean {
  return line.startsWith(MARK);
}

/** The position of a relay line within a line, for example after other output without a newline; -1 if there is none. */
export function asideStart(line: string): number {
  return line.indexOf(MARK);
}

/** Encodes a relay line, without its line ending. */
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

/** Encodes the type of the id, because 1 and "1" are different ids. */
function idWords(id: RequestId | undefined): readonly (string | number)[] {
  if (id === undefined) return [];
  return typeof id === 'string' ? ['string', id.toWellFormed()] : ['number', id];
}

/** Decodes a line from a relay. @returns undefined for any other line */
export function readRelayMail(line: string): RelayMail | undefined {
  const [name, reason, count, head = ''] = wordsIn(line);
  if (name === 'hello') return { type: 'hello' };
  const bytes = Number(count);
  if (name !== 'unreadable' || !Number.isSafeInteger(bytes) || bytes < 0) return undefined;
  return reason === 'too long' || reason === 'not UTF-8' ? { type: 'unreadable', reason, bytes, head } : undefined;
}

/** Decodes a line from a server. @returns undefined for any other line */
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
