/** HTTP requests as bytes, made once: before each sending only the id of its message is written anew. */

export const LEGACY = '2025-06-18';
export const MODERN = '2026-07-28';

/** How a client speaks over HTTP: the modern era; the legacy one in a session; the legacy one to a server that keeps no sessions. */
export type Way = 'modern' | 'session' | 'stateless';

/** Who calls: in a session it is told which. */
export interface Caller {
  readonly way: Way;
  readonly session?: string;
}

export const SELF = { name: 'bench', version: '1.0.0' };
export const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': SELF,
  'io.modelcontextprotocol/clientCapabilities': {},
};
export const INITIALIZE = { protocolVersion: LEGACY, capabilities: {}, clientInfo: SELF };

/** Ids have seven digits, so that a request keeps its length. */
const FIRST = 1_000_000;
const LAST = 9_999_999;

/** A request that may be sent many times, each time with another id; wherever else its bytes have the id, they have the new one, too. */
export class PreparedCall {
  readonly bytes: Buffer;
  readonly #places: readonly number[];
  id = FIRST;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    const places: number[] = [];
    for (let at = bytes.indexOf(String(FIRST)); at >= 0; at = bytes.indexOf(String(FIRST), at + 1)) places.push(at);
    this.#places = places;
  }

  /** The same request with this id. @param id a whole number; of one that has more than seven digits, the last ones count */
  withId(id: number): Buffer {
    this.id = FIRST + (id % (LAST - FIRST + 1));
    for (const place of this.#places) this.bytes.write(String(this.id), place, 'latin1');
    return this.bytes;
  }
}

/** A request of any method. */
export function request(url: URL, caller: Caller, method: string, params: Params = {}): PreparedCall {
  const { headers, message } = parts(caller, method, params);
  return new PreparedCall(post(url, headers, message));
}

/** A `tools/call` of echo. */
export function echo(url: URL, caller: Caller, text: string): PreparedCall {
  return request(url, caller, 'tools/call', { name: 'echo', arguments: { text } });
}

export function initialize(url: URL): Buffer {
  return post(url, {}, { jsonrpc: '2.0', id: 0, method: 'initialize', params: INITIALIZE });
}

export function initialized(url: URL, session: string): Buffer {
  const message = { jsonrpc: '2.0', method: 'notifications/initialized' };
  return post(url, headersOf({ way: 'session', session }), message);
}

/** Ends a session. */
export function end(url: URL, session: string): Buffer {
  return written('DELETE', url, headersOf({ way: 'session', session }));
}

/** What a request has in its params beside the `_meta` that the era wants. */
export interface Params {
  readonly name?: string;
  readonly arguments?: object;
  readonly _meta?: object;
}

/** The headers and the message of a request, for a client that writes them itself. */
export function parts(
  caller: Caller,
  method: string,
  params: Params,
): { readonly headers: Record<string, string>; readonly message: object } {
  const message = { jsonrpc: '2.0', id: FIRST, method };
  if (caller.way !== 'modern') return { headers: headersOf(caller), message: { ...message, params } };
  const named: Record<string, string> = params.name === undefined ? {} : { 'Mcp-Name': params.name };
  return {
    headers: { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': method, ...named },
    message: { ...message, params: { ...params, _meta: { ...META, ...params._meta } } },
  };
}

function headersOf({ session }: Caller): Record<string, string> {
  return { ...(session === undefined ? {} : { 'Mcp-Session-Id': session }), 'MCP-Protocol-Version': LEGACY };
}

function post(url: URL, headers: Record<string, string>, message: object): Buffer {
  const body = JSON.stringify(message);
  const more = {
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  };
  return written('POST', url, { ...more, ...headers }, body);
}

function written(method: string, url: URL, headers: Record<string, string | number>, body = ''): Buffer {
  const lines = Object.entries({ Host: url.host, ...headers }).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from(`${method} ${url.pathname} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
}
