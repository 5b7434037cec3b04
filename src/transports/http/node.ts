/** `node:http` requests and responses, as the endpoint sees them. */
import { Buffer, isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Body, Headers, HttpRequest, HttpResponse, Listener } from './message.ts';

export class NodeRequest implements HttpRequest {
  readonly #request: IncomingMessage;
  readonly response: HttpResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.response = new NodeResponse(response, request.socket);
  }

  get method(): string {
    return this.#request.method ?? 'GET';
  }

  get url(): string {
    return this.#request.url ?? '/';
  }

  get remoteAddress(): string | undefined {
    return this.#request.socket.remoteAddress;
  }

  repeats(name: string): boolean {
    const { rawHeaders } = this.#request;
    let times = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const raw = rawHeaders[at];
      if (raw?.length === name.length && raw.toLowerCase() === name) times += 1;
    }
    return times > 1;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return typeof value === 'string' ? value : value?.join(', ');
  }

  body(maxBytes: number, done: (body: Body) => void): void {
    const request = this.#request;
    if (request.readableEnded) return done({ fault: 'read already' });
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return done({ fault: 'too long' });
    let first: Buffer | undefined;
    let rest: Buffer[] | undefined;
    let length = 0;
    let over = false;
    const finish = (body: Body): void => {
      if (over) return;
      over = true;
      done(body);
    };
    request.on('data', (chunk: Buffer) => {
      if (over) return;
      length += chunk.length;
      if (length > maxBytes) {
        first = rest = undefined;
        return finish({ fault: 'too long' });
      }
      if (!first) first = chunk;
      else if (rest) rest.push(chunk);
      else rest = [first, chunk];
    });
    request.on('end', () => {
      const bytes = rest ? Buffer.concat(rest) : (first ?? Buffer.alloc(0));
      finish(isUtf8(bytes) ? { text: bytes.toString('utf8') } : { fault: 'not UTF-8' });
    });
    const cut = (): void => finish({ fault: 'cut' });
    request.on('error', cut);
    request.on('close', cut);
  }
}

/** By socket, who wants to know when it closes: one listener for all of them. */
const waiting = new WeakMap<Socket, Set<() => void>>();

function wait(socket: Socket, closed: () => void): void {
  let all = waiting.get(socket);
  if (!all) {
    all = new Set();
    waiting.set(socket, all);
    socket.once('close', () => {
      for (const each of [...(waiting.get(socket) ?? [])]) each();
    });
  }
  all.add(closed);
}

class NodeResponse implements HttpResponse {
  listener: Listener | undefined;
  gone = false;
  readonly #response: ServerResponse;

  constructor(response: ServerResponse, socket: Socket) {
    this.#response = response;
    response.on('close', this.#closed);
    // A pipelined request waits for the socket, and Node tells it nothing when that closes.
    if (!response.socket) wait(socket, this.#closed);
    // A client that is gone is no error of ours; 'close' tells.
    response.on('error', () => {});
  }

  readonly #closed = (): void => {
    if (this.gone) return;
    this.gone = true;
    const { socket } = this.#response.req;
    waiting.get(socket)?.delete(this.#closed);
    this.listener?.closed();
  };

  send(status: number, headers: Headers, body: string | undefined): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    response.writeHead(
      status,
      body === undefined
        ? status === 204
          ? headers
          : { ...headers, 'content-length': 0 }
        : { ...headers, 'content-length': Buffer.byteLength(body) },
    );
    response.end(body);
  }

  begin(status: number, headers: Headers): void {
    const response = this.#response;
    response.on('drain', () => this.listener?.drained());
    response.writeHead(status, headers);
    response.flushHeaders();
  }

  write(text: string): boolean {
    return this.#response.destroyed || this.#response.write(text);
  }

  get pending(): number {
    return this.#response.writableLength;
  }

  end(): void {
    this.#response.end();
  }

  destroy(): void {
    this.#response.destroy();
  }
}
