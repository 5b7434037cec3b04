/** What a client can read and what it sent, by its Accept and Content-Type headers. */

/** Which of the two forms of an answer a client takes. */
export interface Accepted {
  readonly json: boolean;
  readonly sse: boolean;
}

const BOTH: Accepted = { json: true, sse: true };
const JSON_ONLY: Accepted = { json: true, sse: false };
const SSE_ONLY: Accepted = { json: false, sse: true };
const NEITHER: Accepted = { json: false, sse: false };

/** What a client looks for in each form, the most specific range first: that one decides (RFC 9110 section 12.5.1). */
const JSON_RANGES = ['application/json', 'application/*', '*/*'] as const;
const SSE_RANGES = ['text/event-stream', 'text/*', '*/*'] as const;

const ZERO_WEIGHT = /^q=0(?:\.0*)?$/i;
/** No comma: two values that a proxy has joined are not one that says JSON. */
const JSON_TYPE = /^[ \t]*application\/json[ \t]*(?:;[^,]*)?$/i;

/**
 * Reads an Accept header; takes time in proportion to its length, whatever it holds. Weights count only where they are 0:
 * the server has its own preference. Parameters of a media range are read over.
 *
 * @param accept as it came; absent or empty, it takes both (RFC 9110 section 12.5.1)
 * @example accepts('application/json, text/event-stream;q=0').sse === false
 */
export function accepts(accept: string | undefined): Accepted {
  // What the official clients send, with POST and with GET.
  if (accept === undefined || accept === 'application/json, text/event-stream') return BOTH;
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
 * Whether a body is declared to be JSON. Only `application/json` will do: a page of another site can send `text/plain` and a
 * few others without asking first (Fetch, "CORS-safelisted request-header"), so they must not reach a tool.
 *
 * @param contentType as it came; parameters are read over, see {@link foreignCharset}
 */
export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && (contentType === 'application/json' || JSON_TYPE.test(contentType));
}

/**
 * The first character set of a Content-Type header that is not UTF-8, in which JSON between systems must be (RFC 8259 section 8.1).
 *
 * @param contentType as it came; without a parameter `charset` the body counts as UTF-8
 * @example foreignCharset('application/json; charset=utf-16') === 'utf-16'
 */
export function foreignCharset(contentType: string | undefined): string | undefined {
  if (contentType === undefined || contentType === 'application/json') return undefined;
  for (const parameter of pieces(contentType, ';').slice(1)) {
    const at = parameter.indexOf('=');
    if (at === -1 || parameter.slice(0, at).trim().toLowerCase() !== 'charset') continue;
    const charset = unquoted(parameter.slice(at + 1).trim()).toLowerCase();
    if (charset !== 'utf-8' && charset !== 'utf8') return charset;
  }
  return undefined;
}

/**
 * Whether a GET asks for a stream of events. It must say so by name, or take anything: some clients of 2024-11-05 send only
 * a range of all types. A browser that opens the address as a page names `text/html`, and gets no stream.
 *
 * @param accept as it came; absent, it does not ask for one
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

/** Cuts at each separator that is not inside a quoted string (RFC 9110 section 5.6.4). */
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
