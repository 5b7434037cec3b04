/** Looks at a JSON-RPC message no further than it takes to tell what it is: its id, its method, or that it is an answer. */
import { isObject } from '../../protocol/json.ts';

/** What is looked at of one message; the rest of it is parsed when somebody asks. */
export class ScannedMessage {
  /** The id as JSON has it, which tells 1 from "1"; undefined if there is none. */
  readonly key: string | undefined;
  readonly method: string | undefined;
  readonly answer: boolean;
  readonly #text: string | undefined;
  #body: Readonly<Record<string, unknown>> | undefined;

  /** @param whole the message: its text, or what that was parsed to */
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

  /** The id of a message that is owed a response: of all but notifications, responses, and what has an id that no server can read. */
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

/** The messages of a line: one, or those of a batch, or none if it is no JSON (the server says so). The start of a message may do. */
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

/** True for a string or an integer up to 2^53-1, as JSON has it: with any other id a server answers without one. */
function isReadable(key: string): boolean {
  return key.charCodeAt(0) === QUOTE || Number.isSafeInteger(Number(key));
}

/** What a text is as JSON; undefined where it is none. */
export function parsed(text: string): unknown {
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

/** How nearly every message begins. */
export const USUAL = '{"jsonrpc":"2.0",';

/**
 * What a line is, by the keys of its outermost object. It reads no further than it must: what is wrong behind that is for
 * the one who parses it to find.
 *
 * @returns undefined for what takes a parser: a batch, a name with an escape in it, or what is no object at all
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
    // With its id known, nothing more is wanted of an answer: what it holds may be long.
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

/** An id as `JSON.stringify` would have it. */
function keyOf(raw: string): string {
  if (/^(?:0|-?[1-9]\d{0,14}|"[ !#-[\]-~]*")$/.test(raw)) return raw;
  return String(JSON.stringify(parsed(raw)));
}

function blank(line: string, from: number): number {
  let at = from;
  // A tab or the like counts as well: nothing below a space is anything else.
  while (line.charCodeAt(at) <= SPACE) at += 1;
  return at;
}

/** Behind the string that begins at `from`; -1 if it does not end. */
function stringEnd(line: string, from: number): number {
  for (let at = line.indexOf('"', from + 1); at !== -1; at = line.indexOf('"', at + 1)) {
    let before = at - 1;
    while (line.charCodeAt(before) === BACKSLASH) before -= 1;
    // An even number of backslashes stands for themselves.
    if ((at - before) % 2 === 1) return at + 1;
  }
  return -1;
}

/** Behind the value that begins at `from`; -1 if it does not end. */
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
      // The end of what this value stands in.
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (code === COMMA && depth === 0) return at;
    at += 1;
  }
  return -1;
}
