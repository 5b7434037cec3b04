/** A TCP connection to the server, byte by byte: what an HTTP client library would not send, or not leave unread. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { inTime } from '../../harness/wait.ts';

/** One response of a connection, its body whole and decoded. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * @example
 * const raw = await Raw.open(stage.url);
 * raw.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
 * const { status } = await raw.response();
 */
export class Raw {
  readonly socket: Socket;
  /** What has come and was not taken, one character a byte. */
  text = '';
  /** Most characters of it that are kept, from its end. */
  keep = Number.POSITIVE_INFINITY;
  /** Bytes that have come. */
  received = 0;
  /** The other side has ended or broken the connection. */
  over = false;
  readonly #looks = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.received += chunk.length;
      this.text += chunk.toString('latin1');
      if (this.text.length > this.keep) this.text = this.text.slice(-this.keep);
      this.#look();
    });
    socket.on('error', () => {});
    for (const event of ['end', 'close'])
      socket.on(event, () => {
        this.over = true;
        this.#look();
      });
  }

  static async open(url: string): Promise<Raw> {
    const { hostname, port } = new URL(url);
    const raw = new Raw(connect({ host: hostname, port: Number(port) }));
    await once(raw.socket, 'connect');
    return raw;
  }

  write(text: string | Uint8Array): void {
    this.socket.write(text);
  }

  /** Resolves once what came and was not taken fits; looks again whenever more comes. @throws {Error} when it does not in time, or the connection ends first */
  until(what: string, fits: (text: string) => boolean): Promise<void> {
    return this.#wait<true>(what, () => (fits(this.text) ? true : undefined)).then(() => undefined);
  }

  /** The next response on the connection. @throws as {@link until} does */
  response(): Promise<RawResponse> {
    return this.#wait('a response', () => {
      const read = readResponse(this.text, this.over);
      if (read) this.text = this.text.slice(read.length);
      return read?.response;
    });
  }

  /** Resolves once the other side has ended the connection. @throws {Error} when it does not in time */
  closed(): Promise<void> {
    return this.#wait<true>('the end of the connection', () => (this.over ? true : undefined)).then(() => undefined);
  }

  /** Breaks the connection. */
  cut(): void {
    this.socket.destroy();
  }

  #wait<T>(what: string, found: () => T | undefined): Promise<T> {
    const waited = new Promise<T>((resolve, reject) => {
      const look = (): void => {
        const value = found();
        if (value === undefined && !this.over) return;
        this.#looks.delete(look);
        if (value === undefined) reject(new Error(`the connection ended before ${what}; ${this.#told()}`));
        else resolve(value);
      };
      this.#looks.add(look);
      look();
    });
    return inTime(waited, () => `${what}; ${this.#told()}`);
  }

  #look(): void {
    for (const look of [...this.#looks]) look();
  }

  #told(): string {
    return `${this.received} bytes had come, the last: ${JSON.stringify(this.text.slice(-300))}`;
  }
}

/** The text of one request: lines of headers as they are, and a `Content-Length` where there is a body. */
export function rawRequest(method: string, target: string, headers: readonly string[], body?: string): string {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return `${[`${method} ${target} HTTP/1.1`, ...headers, ...length].join('\r\n')}\r\n\r\n${body ?? ''}`;
}

function readResponse(text: string, over: boolean): { response: RawResponse; length: number } | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const status = Number(first.split(' ')[1]);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const start = end + 4;
  if (status < 200) return { response: { status, headers, body: '' }, length: start };
  if (headers['transfer-encoding'] === 'chunked') return readChunks(text, start, status, headers);
  const stated = headers['content-length'];
  const length = status === 204 || status === 304 ? 0 : stated === undefined ? undefined : Number(stated);
  if (length === undefined && !over) return undefined;
  const body = length === undefined ? text.slice(start) : text.slice(start, start + length);
  if (length !== undefined && body.length < length) return undefined;
  return { response: { status, headers, body: utf8(body) }, length: start + body.length };
}

function readChunks(
  text: string,
  start: number,
  status: number,
  headers: Readonly<Record<string, string>>,
): { response: RawResponse; length: number } | undefined {
  let body = '';
  for (let at = start; ; ) {
    const line = text.indexOf('\r\n', at);
    if (line < 0) return undefined;
    const size = Number.parseInt(text.slice(at, line), 16);
    const next = line + 2 + size + 2;
    if (text.length < next) return undefined;
    if (size === 0) return { response: { status, headers, body: utf8(body) }, length: next };
    body += text.slice(line + 2, line + 2 + size);
    at = next;
  }
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
