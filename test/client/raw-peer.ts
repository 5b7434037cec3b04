/** Servers of MCP on a raw socket, for tests of a client over HTTP. */
import type { Socket } from 'node:net';
import { type Client, type ConnectOptions, connect } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import type { Timer } from '../../src/core/kernel/clock.ts';
import { isObject } from '../../src/core/protocol/json.ts';
import { jsonResponse, type RawRequest, type RawServer, rawServer, response } from '../harness/raw-server.ts';

export interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string };
}

export function messageOf({ body }: RawRequest): Message {
  const message: unknown = body === '' ? {} : JSON.parse(body);
  return isObject(message) ? (message as unknown as Message) : { method: '' };
}

/** The result of a legacy server for a message. */
export function resultOf({ id, method }: Message): object {
  const results: Readonly<Record<string, object>> = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'old', version: '1' },
    },
    'tools/list': { tools: [{ name: 'add', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'done' }] },
  };
  return { jsonrpc: '2.0', id, result: results[method] ?? {} };
}

/** What a legacy server with a session responds. */
export function legacy(request: RawRequest): Buffer {
  if (request.method === 'DELETE') return response(204);
  if (request.method !== 'POST') return response(405);
  const message = messageOf(request);
  if (message.id === undefined) return response(202);
  return jsonResponse(resultOf(message), 200, message.method === 'initialize' ? { 'mcp-session-id': 's1' } : {});
}

export async function using(
  respond: (request: RawRequest, message: Message) => Buffer | string | undefined,
  body: (client: Client, server: RawServer) => Promise<void>,
  options: ConnectOptions = {},
): Promise<void> {
  const server = await rawServer((request) => respond(request, messageOf(request)) ?? legacy(request));
  try {
    const client = await connect(`${server.url}/mcp`, { eras: 'legacy', log: () => {}, ...options });
    try {
      await body(client, server);
    } finally {
      await client.close();
    }
  } finally {
    await server.close();
  }
}

/** A clock that notes the timers that start. */
export class NotingClock extends SimulatedClock {
  /** The delays of the timers, in milliseconds. */
  readonly delays: number[] = [];

  override after(ms: number, callback: () => void): Timer {
    this.delays.push(ms);
    return super.after(ms, callback);
  }
}

export const EVENTS = { 'content-type': 'text/event-stream' };

/** A stream that ends after these events. */
export function events(text: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}

/** An HTTP+SSE server at /sse. `respond` answers its POSTs; by default, the answer is an event of the newest stream. */
export async function sseServer(
  respond: (request: RawRequest, message: Message) => Buffer | undefined = () => undefined,
): Promise<RawServer> {
  let stream: Socket | undefined;
  return rawServer((request, socket) => {
    const message = messageOf(request);
    if (request.path === '/sse' && request.method === 'POST') return response(404);
    const answer = respond(request, message);
    if (answer !== undefined) return answer;
    if (request.method === 'GET') {
      stream = socket;
      return 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages?s=1\n\n';
    }
    if (message.id !== undefined) stream?.write(`data: ${JSON.stringify(resultOf(message))}\n\n`);
    return response(202);
  });
}
