/** Finds the JSON-RPC message of a line on which a program has written other output in front of it. */
import { isObject } from '../protocol/json.ts';
import { readExact } from '../protocol/json-text.ts';

/** Beginnings of messages that are tried in one line: the output of a hostile program must not cost more. */
const MAX_BEGINNINGS = 8;

/** An object that begins with a member of JSON-RPC, or a batch of such. */
const BEGINNING = /(?:\[\s*)?\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:/g;

const BEGINS = new RegExp(`^${BEGINNING.source}`);

/** True for a line that begins as nearly all messages do, so that only the reader of messages needs to parse it. */
export function beginsAsMessage(line: string): boolean {
  return BEGINS.test(line);
}

/**
 * Finds the message, or the batch, that ends a line.
 *
 * @returns undefined if the line ends with none. `noise` is the output in front of it; empty for a line that is a message
 * @example messageInLine('50 %{"jsonrpc":"2.0","method":"ready"}')?.noise // '50 %'
 */
export function messageInLine(line: string): { readonly noise: string; readonly message: string } | undefined {
  if (isMessage(line)) return { noise: '', message: line };
  let beginnings = 0;
  for (const { index } of line.matchAll(BEGINNING)) {
    beginnings += 1;
    if (beginnings > MAX_BEGINNINGS) return undefined;
    const message = line.slice(index);
    if (index > 0 && isMessage(message)) return { noise: line.slice(0, index), message };
  }
  return undefined;
}

function isMessage(text: string): boolean {
  let whole: unknown;
  try {
    whole = readExact(text);
  } catch {
    return false;
  }
  const all: readonly unknown[] = Array.isArray(whole) ? whole : [whole];
  return all.length > 0 && all.every((one) => isObject(one) && one.jsonrpc === '2.0' && hasKind(one));
}

function hasKind({ method, result, error }: Readonly<Record<string, unknown>>): boolean {
  return typeof method === 'string' || result !== undefined || error !== undefined;
}
