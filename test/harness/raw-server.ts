/** A server on a raw socket: it reads HTTP requests, and responds with bytes, whatever they are. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { SCALE } from './scale.ts';

/** Statuses with a meaning, and those beside the ends of a class. */
const NOTABLE = [
  ...[100, 101, 103, 199, 200, 201, 202, 204, 206, 299, 300, 301, 302, 304, 307, 308, 399, 400, 401, 403, 404, 405],
  ...[406, 408, 410, 413, 429, 499, 500, 502, 503, 504, 599, 600, 777, 999],
];

/** The statuses of HTTP for the scale of this run: all that have three digits, or the notable ones. */
export const STATUSES: readonly number[] =
  SCALE === 'quick' ? NOTABLE : Array.from({ length: 900 }, (_, index) => index + 100);

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  /** With names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawServer {
  readonly url: string;
  readonly requests: readonly RawRequest[];
  close(): Promise<void>;
}

/** Responds to a request: with the bytes of a response, or by itself. */
export type Responder = (request: RawRequest, socket: Socket) => string | Buffer | undefined;

/** A response with its length. */
export function response(
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body: string | Buffer = '',
): Buffer {
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)) });
  const head = `HTTP/1.1 ${String(status).padStart(3, '0')} Status\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

/** A JSON response. */
export function jsonResponse(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Buffer {
  return response(status, { 'content-type': 'application/json', ...headers }, JSON.stringify(value));
}

/** Opens a server on a free port of 127.0.0.1. The tests of one file close it. */
export async function rawServer(respond: Responder): Promise<RawServer> {
  const requests: RawRequest[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    let bytes = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      for (let read = readRequest(bytes); read !== undefined; read = readRequest(bytes)) {
        bytes = bytes.subarray(read.length);
        requests.push(read.request);
        const answer = respond(read.request, socket);
        if (answer !== undefined) socket.write(answer);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('expected a port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

function readRequest(bytes: Buffer): { request: RawRequest; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const [method = '', path = ''] = first.split(' ');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      // `trim` would take bytes of a text in UTF-8 for spaces of Latin-1.
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')];
    }),
  );
  const length = end + 4 + Number(headers['content-length'] ?? 0);
  if (bytes.length < length) return undefined;
  return { request: { method, path, headers, body: bytes.subarray(end + 4, length).toString('utf8') }, length };
}
