/** Reads request bodies and writes HTTP responses with the headers of the inspector. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { jsonTextOf, readText } from '../inspector-json.ts';
import { HEADERS, type TokenRefusal } from './token-guard.ts';
import { InputError } from './viewer-input.ts';

type Headers = Readonly<Record<string, string>>;

/** Writes a response. It is not cached unless its headers allow it. */
export function send(
  response: ServerResponse,
  status: number,
  type?: string,
  body: string | Uint8Array = '',
  headers: Headers = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  response.writeHead(status, {
    ...HEADERS,
    'Cache-Control': 'no-store',
    ...(type === undefined ? {} : { 'Content-Type': type }),
    ...(status === 204 || status === 304 ? {} : { 'Content-Length': bytes.length }),
    ...headers,
  });
  response.end(response.req.method === 'HEAD' || status === 204 || status === 304 ? undefined : bytes);
}

export function sendJson(response: ServerResponse, value: object, status = 200, headers: Headers = {}): void {
  send(response, status, 'application/json', jsonTextOf(value), headers);
}

export function refuseRequest(response: ServerResponse, { status, why, headers }: TokenRefusal): void {
  sendJson(response, { error: why }, status, headers);
}

/** Writes the error of a request. Internal errors are not described. */
export function sendError(response: ServerResponse, error: unknown): void {
  const known = error instanceof InputError;
  // Close the connection: the unread rest of the body would be parsed as the next request.
  const headers = known && error.status === 413 ? { Connection: 'close' } : {};
  const why = known ? error.message : 'internal error of the inspector; the observed server is not affected';
  sendJson(response, { error: why }, known ? error.status : 500, headers);
}

/** The body as JSON. @throws {InputError} for one that is too long, or none */
export async function readBody(request: IncomingMessage, most: number): Promise<unknown> {
  const tooLong = (): InputError => new InputError(413, `body: expected at most ${most} bytes, got more`);
  if (Number(request.headers['content-length'] ?? 0) > most) throw tooLong();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request) {
    if (!(chunk instanceof Uint8Array)) continue;
    length += chunk.length;
    if (length > most) throw tooLong();
    chunks.push(chunk);
  }
  const read = readText(Buffer.concat(chunks).toString('utf8'));
  if (!read) throw new InputError(400, 'body: expected JSON');
  return read.value;
}
