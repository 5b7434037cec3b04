/** Content negotiation: the Accept and Content-Type headers of a client. */

/** The forms of a response that a client accepts. */
export interface Accepted {
  readonly json: boolean;
  readonly sse: boolean;
}

export const BOTH: Accepted = { json: true, sse: true };
const JSON_ONLY: Accepted = { json: true, sse: false };
const SSE_ONLY: Accepted = { json: false, sse: true };
const NEITHER: Accepted = { json: false, sse: false };

/** The media ranges of each form, the most specific first, which decides (RFC 9110 section 12.5.1). */
const JSON_RANGES = ['application/json', 'application/*', '*/*'] as const;
const SSE_RANGES = ['text/event-stream', 'text/*', '*/*'] as const;

const ZERO_WEIGHT = /^q=0(?:\.0*)?$/i;
/** No comma: two values that a proxy has joined do not count as JSON. */
const JSON_TYPE = /^[ \t]*application\/json[ \t]*(?:;[^,]*)?$/i;

/**
 * Reads an Accept header in time linear in its length. Weights count only if they are 0, because the server has its own
 * preference. Parameters of a media range are ignored.
 *
 * @param accept the header as received; absent or empty, it accepts both (RFC 9110 section 12.5.1)
 * @example accepts('application/json, text/event-stream;q=0').sse === false
 */
export function accepts(accept: string | undefined): Accepted {
  if (accept === undefined) return BOTH;
  if (accept === 'text/event-stream') return SSE_ONLY;
  const wanted = new Map<string, boolean>();
  for (const part of pieces(accept, ',')) {
    const [range = '', ...parameters] = pieces(part, ';');
    const name = range.trim().toLowerCase();
    if (name === '') continue;
    const refused = parameters.some((parameter) => ZERO_WEIGHT.test(parameter.trim()));
    wanted.set(name, wanted.get(name) === true || !refused);
  }
  if (wanted.size === 0) return BOTH;
  if (takes(wanted, JSON_RANGES)) return takes(wanted, SSE_RANGES) ? BOTH : JSON_ONLY;
  return takes(wanted, SSE_RANGES) ? SSE_ONLY : NEITHER;
}

/**
 * True if a body is declared as JSON. Only `application/json` is accepted: a page of another site can send `text/plain`
 * and a few other types without a preflight (Fetch, "CORS-safelisted request-header"), and these must not reach a tool.
 *
 * @param contentType the header as received; parameters are ignored, see {@link foreignCharset}
 */
export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && JSON_TYPE.test(contentType);
}

/**
 * The first character set of a Content-Type header that is not UTF-8. JSON between systems must be UTF-8 (RFC 8259
 * section 8.1).
 *
 * @param contentType the header as received; without a parameter `charset` the body counts as UTF-8
 * @example foreignCharset('application/json; charset=utf-16') === 'utf-16'
 */
export function foreignCharset(contentType: string | undefined): string | undefined {
  if (contentType === undefined) return undefined;
  for (const parameter of pieces(contentType, ';').slice(1)) {
    const at = parameter.indexOf('=');
    if (at === -1 || parameter.slice(0, at).trim().toLowerCase() !== 'charset') continue;
    const charset = unquoted(parameter.slice(at + 1).trim()).toLowerCase();
    if (charset !== 'utf-8' && charset !== 'utf8') return charset;
  }
  return undefined;
}

/** The reason why a body of this type and encoding is not accepted. */
export function contentFault(type: string | undefined, encoding: string | undefined): string | undefined {
  if (!isJson(type)) return `Content-Type: expected application/json, got ${shown(type)}`;
  const charset = foreignCharset(type);
  if (charset !== undefined)
    return `Content-Type: expected charset=utf-8 or none, got ${shown(charset)}. Send the body as UTF-8`;
  return encoding === undefined || encoding === 'identity'
    ? undefined
    : `Content-Encoding: expected none, got ${shown(encoding)}. Send the body uncompressed`;
}

/** A header in an error message. */
export function shown(value: string | undefined): string {
  return value === undefined ? 'none' : `"${value.slice(0, 100).replace(/[^ -~]/g, '?')}"`;
}

/**
 * True if a GET requests an event stream. It must name the type or accept any type: some clients of 2024-11-05 send
 * only the range of all types. A browser that opens the address as a page names `text/html` and gets no stream.
 *
 * @param accept the header as received; an absent header requests no stream
 */
export function asksForEvents(accept: string | undefined): boolean {
  if (accept === undefined || accept === 'text/event-stream') return accept !== undefined;
  const named = accept.toLowerCase();
  return accepts(accept).sse && (named.includes('text/event-stream') || !named.includes('text/html'));
}

function unquoted(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"')
    ? value.slice(1, -1).replace(/\\(.)/g, '$1')
    : value;
}

function takes(wanted: ReadonlyMap<string, boolean>, ranges: readonly string[]): boolean {
  const deciding = ranges.find((range) => wanted.has(range));
  return deciding !== undefined && wanted.get(deciding) === true;
}

/** Splits at each separator outside quoted strings (RFC 9110 section 5.6.4). */
function pieces(text: string, separator: ',' | ';'): readonly string[] {
  if (!text.includes('"')) return text.split(separator);
  const found: string[] = [];
  let from = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') quoted = !quoted;
    else if (quoted && character === '\\') at += 1;
    else if (!quoted && character === separator) {
      found.push(text.slice(from, at));
      from = at + 1;
    }
  }
  found.push(text.slice(from));
  return found;
}
