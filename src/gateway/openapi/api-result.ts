/** The result of a call from the response of its API: data, text, images and sounds; errors in words; and the facts of HTTP. */
import { STATUS_CODES } from 'node:http';
import { audio, image } from '../../core/execution/content.ts';
import { truncate } from '../../core/execution/envelope.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isJsonObject, type JsonObject, type JsonValue, shortened } from '../../core/protocol/json.ts';
import { readExact, writeJson } from '../../core/protocol/json-text.ts';
import { META } from '../../core/protocol/meta.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import { type ApiResponse, redirectOf, retryAfter } from './api-connection.ts';
import { pickedFrom } from './picked-result.ts';
import type { SentSecrets } from './sent-secrets.ts';

/** A call as its result describes it. */
export interface AnsweredCall {
  readonly mount: string;
  /** The tool, as the client knows it. */
  readonly tool: string;
  readonly method: string;
  /** The request has no effects. */
  readonly reads: boolean;
  readonly clock: Pick<Clock, 'date'>;
  /** Longest data that is sent whole, in characters of JSON. */
  readonly maxResultLength: number;
  /** The credentials of the request, which no result contains. */
  readonly secrets: SentSecrets;
  /** JSON Pointers to what is passed on; undefined: all. */
  readonly pick?: readonly string[] | undefined;
  /** A sentence for the result of a 401 or 403: the schemes, and what to do. */
  readonly unauthorized?: string | undefined;
}

/** Longest image or sound, in bytes. */
const MAX_MEDIA_BYTES = 1_048_576;
/** Longest text of an error, in characters. */
const MAX_ERROR_LENGTH = 2_000;
/** Longest value of `_meta`, in characters. */
const MAX_META_LENGTH = 2_000;
/** Deepest nesting of data, in levels. Deeper JSON is passed on as text. */
const MAX_DEPTH = 128;
/** Members in which APIs name the next page. */
const CURSORS = ['next', 'next_cursor', 'nextCursor', 'next_page_token', 'nextPageToken', 'next_page', 'nextPage'];
const NEXT_LINKS = ['nextLink', '@odata.nextLink', 'next_url', 'nextUrl'];
/** Members with the text of an error (RFC 9457 first), and those with its details. */
const MESSAGES = ['detail', 'message', 'error_description', 'description', 'error', 'errorMessage', 'reason', 'msg'];
const DETAILS = ['errors', 'details', 'detail', 'invalid-params', 'invalid_params', 'violations', 'issues'];

/** The result of a response. */
export function apiResult(call: AnsweredCall, response: ApiResponse): CallToolResult {
  const { status } = response;
  if (status >= 400) return errorResult(call, response);
  const redirect = redirectOf(response);
  if (redirect) return redirected(call, response, redirect);
  return successResult(call, response);
}

/** @example '404 Not Found' */
export function statusText(status: number): string {
  const words = STATUS_CODES[status];
  return words === undefined ? String(status) : `${status} ${words}`;
}

function successResult(call: AnsweredCall, response: ApiResponse): CallToolResult {
  const { status, body } = response;
  if (body.length === 0) return textResult(call, response, statusText(status));
  const type = typeOf(response);
  const media =
    type.startsWith('image/') && type !== 'image/svg+xml' ? image : type.startsWith('audio/') ? audio : undefined;
  if (media) {
    if (body.length > MAX_MEDIA_BYTES) return unshown(call, response, type, `longer than ${MAX_MEDIA_BYTES} bytes`);
    return { content: [media(body, type)], _meta: metaOf(call, response) };
  }
  if (!isText(type) && !isUtf8(body)) return unshown(call, response, type, 'no text, image or sound');
  const text = call.secrets.removedFrom(textOf(response));
  const data = dataIn(text, type);
  const result = data === undefined ? textResult(call, response, text) : dataResult(call, response, data.value);
  if (!text.includes('\ufffd') || isUtf8(body)) return result;
  return { ...result, content: [...result.content, { type: 'text', text: DAMAGED }] };
}

const DAMAGED = 'The response has bytes that are no text in its charset. Each is shown as U+FFFD.';

function dataResult(call: AnsweredCall, response: ApiResponse, value: JsonValue): CallToolResult {
  const { maxResultLength, pick } = call;
  const shown = pick ? pickedFrom(value, pick) : value;
  const whole: JsonObject = isJsonObject(shown) ? shown : { result: shown };
  const { value: cut, kept } = truncate(whole, maxResultLength);
  const structured = isJsonObject(cut) ? cut : {};
  const note = kept === undefined ? undefined : cutNote(kept, maxResultLength);
  return {
    content: [
      // JSON of an object is the structured content, and that of another value is the text of that value.
      { type: 'text', text: writeJson(isJsonObject(shown) || kept !== undefined ? structured : shown) },
      ...(note === undefined ? [] : [{ type: 'text', text: note } as const]),
    ],
    structuredContent: structured,
    _meta: metaOf(call, response, value),
  };
}

function textResult(call: AnsweredCall, response: ApiResponse, text: string): CallToolResult {
  const { maxResultLength } = call;
  const over = text.length > maxResultLength;
  const kept = `the first ${maxResultLength} of ${text.length} characters`;
  return {
    content: [
      { type: 'text', text: over ? shortened(text, maxResultLength) : text },
      ...(over ? [{ type: 'text', text: cutNote(kept, maxResultLength) } as const] : []),
    ],
    _meta: metaOf(call, response),
  };
}

function cutNote(kept: string, max: number): string {
  return `This is ${kept}: at most ${max} characters are sent (maxResultLength). Ask for less, or for the next page.`;
}

/** The result for bytes that no client shows. */
function unshown(call: AnsweredCall, response: ApiResponse, type: string, why: string): CallToolResult {
  const { reads, tool } = call;
  const what = `The response is ${type === '' ? 'of an unnamed type' : shortened(type, 100)}, ${response.body.length} bytes: ${why}. It is not passed on.`;
  return {
    content: [
      { type: 'text', text: `${statusText(response.status)}. ${reads ? '' : `"${tool}" was carried out. `}${what}` },
    ],
    isError: true,
    _meta: metaOf(call, response),
  };
}

function redirected(call: AnsweredCall, response: ApiResponse, to: URL): CallToolResult {
  const { method, reads, tool, secrets } = call;
  const where = secrets.removedFrom(shortened(to.href, MAX_META_LENGTH));
  const why =
    to.origin !== response.url.origin
      ? 'A redirect to another origin is not followed'
      : reads
        ? 'Too many redirects'
        : `A redirect of ${method} is not followed`;
  const known = reads
    ? ''
    : ` It is not known whether "${tool}" was carried out. Find that out before you call it again.`;
  return {
    content: [{ type: 'text', text: `${statusText(response.status)} to ${where}. ${why}.${known}` }],
    isError: true,
    _meta: metaOf(call, response),
  };
}

// Errors

function errorResult(call: AnsweredCall, response: ApiResponse): CallToolResult {
  const { status } = response;
  const what = call.secrets.removedFrom(errorText(response));
  const sentences = [
    what === '' ? `${statusText(status)}.` : `${statusText(status)}: ${what}`,
    ...((status === 401 || status === 403) && call.unauthorized !== undefined ? [call.unauthorized] : []),
  ];
  const retryAfterMs = status === 429 || status === 503 ? retryAfter(response, call.clock) : undefined;
  if (retryAfterMs !== undefined) sentences.push(`Try again in ${Math.ceil(retryAfterMs / 1_000)} s.`);
  return {
    content: [{ type: 'text', text: sentences.join('\n') }],
    isError: true,
    _meta: {
      ...metaOf(call, response),
      ...(retryAfterMs !== undefined && { [META.retryAfterMs]: retryAfterMs }),
    },
  };
}

/** The words in the body of an error, in at most 2,000 characters. */
function errorText(response: ApiResponse): string {
  const { body } = response;
  const type = typeOf(response);
  if (body.length === 0) return '';
  if (!isText(type) && !isUtf8(body)) return `${type}, ${body.length} bytes`;
  const text = textOf(response).trim();
  if (/^\s*<(?:!doctype html|html)\b/i.test(text) || type === 'text/html') return titleOf(text);
  const data = dataIn(text, type);
  return shortened(data === undefined ? text : wordsIn(data.value), MAX_ERROR_LENGTH);
}

/** The title of a page. The rest of it is for a browser. */
function titleOf(html: string): string {
  const [, title = ''] = /<title[^>]*>([^<]{0,500})/i.exec(html.slice(0, 100_000)) ?? [];
  return unescaped(title).replace(/\s+/g, ' ').trim();
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' };

function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (found, name: string) => ENTITIES[name] ?? found);
}

/** The words of an error in JSON, and its details as they are. Without words: the JSON. */
function wordsIn(value: JsonValue): string {
  const problem = isJsonObject(value) ? (isJsonObject(value.error) ? value.error : value) : undefined;
  if (!problem) return typeof value === 'string' ? value : writeJson(value);
  const { title } = problem;
  const words = [title, ...MESSAGES.map((name) => problem[name])]
    .filter((each): each is string => typeof each === 'string' && each.trim() !== '')
    .slice(0, 2);
  if (words.length === 0) return writeJson(value);
  const details = Object.entries(problem).filter(
    ([name, member]) => DETAILS.includes(name) && typeof member === 'object' && member !== null,
  );
  return [
    [...new Set(words)].join(': '),
    ...(details.length === 0 ? [] : [writeJson(Object.fromEntries(details))]),
  ].join('\n');
}

// Bodies

/** The media type, in lower case and without parameters. */
function typeOf({ headers }: ApiResponse): string {
  return (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

function isJson(type: string): boolean {
  return /[/+]json$/.test(type);
}

/** True for a type that is text, or may be: an API that names no type sends JSON most often. */
function isText(type: string): boolean {
  if (type.startsWith('text/') || isJson(type) || type.endsWith('+xml') || type.endsWith('yaml')) return true;
  return /^application\/(?:xml|javascript|ecmascript|graphql|sql|x-www-form-urlencoded|x-ndjson|jsonl|json-seq)$/.test(
    type,
  );
}

function isUtf8(body: Buffer): boolean {
  try {
    // Bytes with NUL are no text, though they may be UTF-8.
    return !body.includes(0) && typeof new TextDecoder('utf-8', { fatal: true }).decode(body) === 'string';
  } catch {
    return false;
  }
}

/** The body as text, in the charset of its header. Never throws. */
function textOf({ headers, body }: ApiResponse): string {
  const [, charset = 'utf-8'] = /;\s*charset="?([\w.:-]+)/i.exec(headers.get('content-type') ?? '') ?? [];
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}

/**
 * The data in a body. Its header is believed only if it can be read.
 *
 * @returns undefined for a text
 */
function dataIn(text: string, type: string): { readonly value: JsonValue } | undefined {
  const begins = /^\s*[[{]/.test(text);
  if (!isJson(type) && !(begins && (type === '' || type === 'text/plain' || type === 'application/octet-stream')))
    return undefined;
  try {
    const value = readExact(text) as JsonValue;
    return depthOf(text) > MAX_DEPTH ? undefined : { value };
  } catch {
    return undefined;
  }
}

/** The body of a response as data; undefined for anything else. */
export function responseData(response: ApiResponse): JsonValue | undefined {
  return dataIn(textOf(response), typeOf(response))?.value;
}

/** The nesting of a JSON text. */
function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (character === '"') {
      // Skips the string.
      for (at += 1; at < json.length && json[at] !== '"'; at += 1) if (json[at] === '\\') at += 1;
    } else if (character === '[' || character === '{') {
      depth += 1;
      deepest = Math.max(deepest, depth);
    } else if (character === ']' || character === '}') depth -= 1;
  }
  return deepest;
}

// The facts of HTTP

function metaOf(call: AnsweredCall, response: ApiResponse, data?: JsonValue): JsonObject {
  const { headers, status } = response;
  const { secrets } = call;
  const said = (name: string): string | undefined => {
    const value = headers.get(name);
    return value === null || value.length > MAX_META_LENGTH ? undefined : secrets.removedFrom(value);
  };
  const etag = said('etag');
  const link = said('link');
  const next = nextIn(data) ?? nextOf(link);
  const location = said('location');
  const retryAfterMs = retryAfter(response, call.clock);
  return {
    [META.http]: {
      status,
      ...(etag !== undefined && { etag }),
      ...(link !== undefined && { link }),
      ...(next !== undefined && { next }),
      ...(location !== undefined && { location }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    },
  };
}

/** The address of the next page in `Link` (RFC 8288 section 3). */
function nextOf(link: string | undefined): string | undefined {
  for (const [, address, parameters = ''] of (link ?? '').matchAll(/<([^>]*)>((?:\s*;[^,;<]*)*)/g))
    if (/;\s*rel\s*=\s*"?(?:[^";]*\s)?next(?:\s[^";]*)?"?\s*(?:;|$)/i.test(parameters)) return address;
  return undefined;
}

/** The cursor or the address of the next page in the data, at its top or in a member for paging. */
function nextIn(data: JsonValue | undefined): string | undefined {
  if (!isJsonObject(data)) return undefined;
  const places = [data, data.meta, data.paging, data.pagination, data.links, data._links, data.response_metadata];
  for (const place of places) {
    if (!isJsonObject(place)) continue;
    for (const name of [...CURSORS, ...NEXT_LINKS]) {
      const member = place[name];
      const value = isJsonObject(member) ? (member.href ?? member.after ?? member.cursor) : member;
      if ((typeof value === 'string' && value !== '' && value.length <= MAX_META_LENGTH) || typeof value === 'number')
        return String(value);
    }
  }
  return undefined;
}
