/** HTTP requests as bytes, made once: before each sending only the id of its message is written anew. */

export const LEGACY = '2025-06-18';
export const MODERN = '2026-07-28';

const SELF = { name: 'bench', version: '1.0.0' };
const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': SELF,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Ids have seven digits, so that a request keeps its length. */
const FIRST = 1_000_000;
const LAST = 9_999_999;

/** A request that may be sent many times, each time with another id. */
export class PreparedCall {
  readonly bytes: Buffer;
  readonly #at: number;
  id = FIRST;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.#at = bytes.indexOf(`"id":${FIRST}`) + '"id":'.length;
  }

  /** The same request with this id. @param id a whole number; of one that has more than seven digits, the last ones count */
  withId(id: number): Buffer {
    this.id = FIRST + (id % (LAST - FIRST + 1));
    this.bytes.write(String(this.id), this.#at, 'latin1');
    return this.bytes;
  }
}

/** A `tools/call` of echo, as a client in a session sends it. */
export function callInSession(url: URL, session: string, text: string): PreparedCall {
  return new PreparedCall(post(url, inSession(session), request(FIRST, 'tools/call', echo(text))));
}

/** A `tools/call` of echo, as a modern client sends it. */
export function modernCall(url: URL, text: string): PreparedCall {
  const headers = { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' };
  return new PreparedCall(post(url, headers, request(FIRST, 'tools/call', { ...echo(text), _meta: META })));
}

export function initialize(url: URL): Buffer {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: SELF };
  return post(url, {}, request(0, 'initialize', params));
}

export function initialized(url: URL, session: string): Buffer {
  return post(url, inSession(session), { jsonrpc: '2.0', method: 'notifications/initialized' });
}

export function ping(url: URL, session: string): Buffer {
  return post(url, inSession(session), request(0, 'ping'));
}

/** Ends a session. */
export function end(url: URL, session: string): Buffer {
  return written('DELETE', url, inSession(session));
}

function inSession(session: string): Record<string, string> {
  return { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': LEGACY };
}

function echo(text: string): object {
  return { name: 'echo', arguments: { text } };
}

function request(id: number, method: string, params?: object): object {
  return { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) };
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
