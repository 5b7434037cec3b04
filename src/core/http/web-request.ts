/** Web standard requests and responses, as the endpoint sees them: for `server.fetch`. */
import type { Auth } from '../messages/auth.ts';
import { LARGE_LENGTH, serveAlone } from '../transports/turn-batch.ts';
import {
  type Body,
  type BodyLimits,
  type Headers,
  type HttpListener,
  type HttpRequest,
  type HttpResponse,
  MAX_START,
} from './http-message.ts';
import { lengthFault, ReceivedBytes, SMALL_BODY } from './received-bytes.ts';

/** Number of bytes that may wait for a client before it counts as slow. */
const HIGH_WATER = 64 * 1024;
const encoder = new TextEncoder();

export class WebRequest implements HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly remoteAddress = undefined;
  readonly connection = undefined;
  readonly localAddress = undefined;
  readonly localPort = undefined;
  readonly version = undefined;
  auth: Auth | undefined;
  readonly response: WebResponse;
  readonly #request: Request;
  readonly #host: string;
  /** The received part of a large body in the byte quota. */
  #received: ReceivedBytes | undefined;

  constructor(request: Request) {
    const { pathname, search, host } = new URL(request.url);
    this.#request = request;
    this.#host = host;
    this.method = request.method;
    this.url = pathname + search;
    this.response = new WebResponse(request.signal);
  }

  header(name: string): string | undefined {
    const value = this.#request.headers.get(name) ?? undefined;
    // A request that was constructed, not received, has its host only in the URL.
    return value === undefined && name === 'host' ? this.#host : value;
  }

  values(name: string): readonly string[] {
    const value = this.header(name);
    return value === undefined ? [] : [value];
  }

  pick(takes: (name: string) => boolean): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#request.headers].filter(([name]) => takes(name)));
  }

  /** Unknown: the headers of a web standard request are already joined. */
  repeats(): boolean {
    return false;
  }

  body(limits: BodyLimits, principal: string, done: (body: Body) => void): void {
    void this.#read(limits, principal).then(
      (body) => {
        if ('text' in body && body.text.length > LARGE_LENGTH) serveAlone({ serve: () => this.#finish(body, done) });
        else this.#finish(body, done);
      },
      () => this.#finish({ fault: 'cut' }, done),
    );
  }

  #finish(body: Body, done: (body: Body) => void): void {
    this.#received?.release();
    done(body);
  }

  async #read(limits: BodyLimits, principal: string): Promise<Body> {
    if (this.#request.bodyUsed) return { fault: 'read already' };
    const refused = lengthFault(Number(this.header('content-length') ?? 0), principal, limits);
    if (refused) return refused;
    const reader = this.#request.body?.getReader();
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let text = '';
    const chunks: Uint8Array[] = [];
    let length = 0;
    while (reader) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.byteLength;
      if (length > limits.maxMessageBytes) {
        await reader.cancel();
        return {
          fault: 'too long',
          start: text.slice(0, MAX_START) || new TextDecoder().decode(value.subarray(0, MAX_START)),
        };
      }
      if (length > SMALL_BODY) {
        this.#received ??= new ReceivedBytes(limits, principal);
        const full = this.#received.grow(length);
        if (full) {
          await reader.cancel();
          return full;
        }
      }
      if (limits.raw) {
        chunks.push(value);
        continue;
      }
      const decoded = decode(() => decoder.decode(value, { stream: true }));
      if (decoded === undefined) return { fault: 'not UTF-8' };
      text += decoded;
    }
    if (limits.raw) return { text: '', bytes: Buffer.concat(chunks) };
    const last = decode(() => decoder.decode());
    return last === undefined ? { fault: 'not UTF-8' } : { text: text + last };
  }
}

/** @returns undefined for bytes that are not UTF-8 */
function decode(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Removes headers about one connection, which belong to the server that owns it (RFC 9110 section 7.6.1). */
function endToEnd({ connection: _, ...headers }: Headers): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value]] : value.map((each): [string, string] => [name, each]),
  );
}

export class WebResponse implements HttpResponse {
  listener: HttpListener | undefined;
  /** Resolves with the response. */
  readonly answered: Promise<Response>;
  readonly #signal: AbortSignal;
  #answer: (response: Response) => void = () => {};
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #slow = false;
  #over = false;

  constructor(signal: AbortSignal) {
    this.answered = new Promise((resolve) => {
      this.#answer = resolve;
    });
    this.#signal = signal;
    signal.addEventListener('abort', this.#aborted, { once: true });
  }

  get gone(): boolean {
    return this.#over;
  }

  send(status: number, headers: Headers, body: string | undefined): void {
    if (this.#over) return;
    this.#answer(new Response(body ?? null, { status, headers: endToEnd(headers) }));
    this.#close();
  }

  begin(status: number, headers: Headers): void {
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          if (!this.#slow) return;
          this.#slow = false;
          this.listener?.drained();
        },
        cancel: () => this.#close(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER }),
    );
    this.#answer(new Response(stream, { status, headers: endToEnd(headers) }));
  }

  write(text: string): boolean {
    if (this.#over || !this.#controller) return true;
    this.#controller.enqueue(encoder.encode(text));
    if ((this.#controller.desiredSize ?? 0) <= 0) this.#slow = true;
    return !this.#slow;
  }

  get pending(): number {
    return Math.max(0, HIGH_WATER - (this.#controller?.desiredSize ?? HIGH_WATER));
  }

  end(): void {
    if (this.#over) return;
    this.#controller?.close();
    this.#close();
  }

  destroy(): void {
    if (this.#over) return;
    const why = new Error('the server disconnected this client');
    if (this.#controller) this.#controller.error(why);
    else this.#answer(new Response(null, { status: 503, headers: { 'retry-after': '1' } }));
    this.#close();
  }

  readonly #aborted = (): void => {
    if (this.#over) return;
    if (this.#controller) this.#controller.error(this.#signal.reason);
    else this.#answer(Response.error());
    this.#close();
  };

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#signal.removeEventListener('abort', this.#aborted);
    this.listener?.closed();
  }
}
