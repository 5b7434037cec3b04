/** Scans a JSON-RPC message for its id, its method and whether it is a response. It stops as soon as these are known. */
import { isObject } from '../../core/protocol/json.ts';

/** The scanned parts of one message. The rest is parsed on demand. */
export class ScannedMessage {
  /** The id as JSON, which distinguishes 1 from "1"; undefined without an id. */
  readonly key: string | undefined;
  readonly method: string | undefined;
  /** True for a response. */
  readonly answer: boolean;
  readonly #text: string | undefined;
  #body: Readonly<Record<string, unknown>> | undefined;

  /** @param whole the message as text or parsed */
  constructor(
    key: string | undefined,
    method: string | undefined,
    answer: boolean,
    whole: string | Readonly<Record<string, unknown>>,
  ) {
    this.key = key;
    this.method = method;
    this.answer = answer;
    if (typeof whole === 'string') this.#text = whole;
    else this.#body = whole;
  }

  /** The id of a message that is owed a response; undefined for notifications, responses and invalid ids. */
  get owed(): string | undefined {
    return this.answer || this.key === undefined || !isReadable(this.key) ? undefined : this.key;
  }

  /** The whole line; undefined for a message of a batch. */
  get line(): string | undefined {
    return this.#text;
  }

  get params(): Readonly<Record<string, unknown>> {
    return objectOf(this.body.params);
  }

  get error(): Readonly<Record<string, unknown>> | undefined {
    const { error } = this.body;
    return isObject(error) ? error : undefined;
  }

  get result(): Readonly<Record<string, unknown>> {
    return objectOf(this.body.result);
  }

  get body(): Readonly<Record<string, unknown>> {
    this.#body ??= objectOf(parsed(this.#text ?? ''));
    return this.#body;
  }
}

/** Scans the messages of a line: one, those of a batch, or none if the line is not JSON. The beginning of a message can be enough. */
export function scanMessages(line: string): readonly ScannedMessage[] {
  const seen = scan(line);
  if (seen) return [seen];
  const whole = parsed(line);
  return (Array.isArray(whole) ? whole : [whole]).filter(isObject).map((body) => {
    const { id, method, result, error } = body;
    const answer = method === undefined && (result !== undefined || error !== undefined);
    const key = id === undefined ? undefined : String(JSON.stringify(id));
    return new ScannedMessage(
      key,
      typeof method === 'string' ? method : undefined,
      answer,
      whole === body ? line : body,
    );
  });
}

/** True for the JSON of a string or an integer up to 2^53-1. A server answers any other id with an error without an id. */
function isReadable(key: string): boolean {
  return key.charCodeAt(0) === QUOTE || Number.isSafeInteger(Number(key));
}

/** Parses a text. @returns undefined if it is not JSON */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const COMMA = 44;
const COLON = 58;
const SPACE = 32;

/** The beginning of nearly every message. */
export const USUAL = '{"jsonrpc":"2.0",';

/**
 * Classifies a line by the keys of its outermost object. It reads no further than necessary; errors after that point are left to
 * the receiver's parser.
 *
 * @returns undefined if the line needs a parser: a batch, a key with an escape, or anything that is not an object
 */
function scan(line: string): ScannedMessage | undefined {
  let at = USUAL.length;
  if (!line.startsWith(USUAL)) {
    at = blank(line, 0);
    if (line.charCodeAt(at) !== OPEN_OBJECT) return undefined;
    at = blank(line, at + 1);
  }
  let id: string | undefined;
  let method: string | undefined;
  let answer = false;
  while (line.charCodeAt(at) === QUOTE) {
    const end = stringEnd(line, at);
    if (end === -1) return undefined;
    const name = line.slice(at + 1, end - 1);
    if (name.includes('\\')) return undefined;
    at = blank(line, end);
    if (line.charCodeAt(at) !== COLON) return undefined;
    at = blank(line, at + 1);
    const from = at;
    // Skip the contents of a response, which may be long, if the id is known.
    if (name === 'result' || name === 'error') {
      answer = true;
      if (id !== undefined) return new ScannedMessage(id, undefined, true, line);
    }
    at = valueEnd(line, from);
    if (at === -1) return undefined;
    if (name === 'id') id = keyOf(line.slice(from, at).trimEnd());
    else if (name === 'method') {
      method = line.charCodeAt(from) === QUOTE ? line.slice(from + 1, at - 1) : undefined;
      if (method === undefined || method.includes('\\')) return undefined;
    }
    if (method !== undefined && (id !== undefined || method.startsWith('notifications/')))
      return new ScannedMessage(id, method, false, line);
    at = blank(line, at);
    if (line.charCodeAt(at) !== COMMA) break;
    at = blank(line, at + 1);
  }
  if (line.charCodeAt(at) !== CLOSE_OBJECT) return undefined;
  return new ScannedMessage(id, method, answer && method === undefined, line);
}

/** Normalises the JSON of an id to the output of `JSON.stringify`. */
function keyOf(raw: string): string {
  if (/^(?:0|-?[1-9]\d{0,14}|"[ !#-[\]-~]*")$/.test(raw)) return raw;
  return String(JSON.stringify(parsed(raw)));
}

function blank(line: string, from: number): number {
  let at = from;
  // Tabs and line breaks count as blanks, too. JSON allows no other character below a space here.
  while (line.charCodeAt(at) <= SPACE) at += 1;
  return at;
}

/** The position after the string that begins at `from`; -1 if it does not end. */
function stringEnd(line: string, from: number): number {
  for (let at = line.indexOf('"', from + 1); at !== -1; at = line.indexOf('"', at + 1)) {
    let before = at - 1;
    while (line.charCodeAt(before) === BACKSLASH) before -= 1;
    // An even number of backslashes before the quote does not escape it.
    if ((at - before) % 2 === 1) return at + 1;
  }
  return -1;
}

/** The position after the value that begins at `from`; -1 if it does not end. */
function valueEnd(line: string, from: number): number {
  let at = from;
  const { length } = line;
  for (let depth = 0; at < length; ) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(line, at);
      if (at === -1) return -1;
      if (depth === 0) return at;
      continue;
    }
    if (code === OPEN_OBJECT || code === OPEN_LIST) depth += 1;
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
      // The end of the enclosing object or list.
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (code === COMMA && depth === 0) return at;
    at += 1;
  }
  return -1;
}
