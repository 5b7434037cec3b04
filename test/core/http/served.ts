/** One server with the same tools, served over `http()` or mounted with `server.fetch` or `server.node`; asked alike. */
import { once } from 'node:events';
import { createServer as createNodeServer, type IncomingMessage, request } from 'node:http';
import { z } from 'zod';
import { createServer, type HttpOptions, http, type Limits, type Server } from '../../../src/index.ts';
import { type PendingArrival, wait } from '../../../src/testing/arrivals.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import type { Asking, Headers, HeldCall } from './support.ts';

export type Kind = 'http' | 'fetch' | 'node';

export interface Whole {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

/** An answer that is still being written. */
export interface Streamed {
  readonly text: string;
  /** Resolves once it contains this. */
  until(part: string): Promise<void>;
  /** Resolves once the server has ended it. */
  readonly ended: Promise<void>;
  cancel(): void;
}

/** A request of another path than the endpoint's, too. */
export interface Requested extends Asking {
  readonly path?: string;
}

export type Mounted = Omit<HttpOptions, 'port' | 'host' | 'path' | 'ownsProcess'>;

export class Served {
  readonly server: Server;
  readonly clock: SimulatedClock;
  /** Asks, and gives the answer as `fetch` does. */
  readonly fetch: (asking: Requested) => Promise<Response>;
  readonly #done: () => void;
  readonly #calls: HeldCall[] = [];
  #called: (() => void) | undefined;

  private constructor(
    server: Server,
    clock: SimulatedClock,
    fetch: (asking: Requested) => Promise<Response>,
    done: () => void,
  ) {
    this.server = server;
    this.clock = clock;
    this.fetch = fetch;
    this.#done = done;
    server.tool('speak', {}, (_args, ctx) => {
      ctx.progress(1);
      return new Promise<string>((finish) => {
        this.#calls.push({ ctx, finish: () => finish('spoken') });
        this.#called?.();
      });
    });
  }

  /** @param define registers more */
  static async open(
    kind: Kind,
    options: Mounted,
    limits: Partial<Limits> = { maxMessageBytes: 20_000 },
    define: (server: Server) => void = () => {},
  ): Promise<Served> {
    const clock = new SimulatedClock();
    const server = createServer({
      name: 'served',
      version: '1.0.0',
      clock,
      log: () => {},
      limits,
      http: options,
    });
    server.tool('echo', { input: z.object({ text: z.string() }) }, ({ text }) => text);
    server.tool('count', { input: z.object({ to: z.number() }) }, ({ to }, { progress }) => {
      for (let done = 1; done <= to; done += 1) progress(done, to);
      return `counted to ${to}`;
    });
    define(server);
    if (kind === 'fetch')
      return new Served(
        server,
        clock,
        (asking) => server.fetch(webRequest('http://localhost/mcp', asking)),
        () => {},
      );
    if (kind === 'http') {
      const transport = http({ port: 0, ...options });
      await server.listen(transport);
      return new Served(
        server,
        clock,
        (asking) => asked(transport.url, asking),
        () => {},
      );
    }
    const host = createNodeServer((request, response) => server.node(request, response));
    await once(host.listen(0, '127.0.0.1'), 'listening');
    const address = host.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`;
    return new Served(
      server,
      clock,
      (asking) => asked(url, asking),
      () => {
        host.close();
        host.closeAllConnections();
      },
    );
  }

  async ask(asking: Asking): Promise<Whole> {
    const response = await this.fetch(asking);
    return { status: response.status, headers: [...response.headers], body: await response.text() };
  }

  async stream(asking: Asking): Promise<Streamed> {
    const { body } = await this.fetch(asking);
    if (!body) throw new Error('expected a body to read, got none');
    return new Reading(body.getReader());
  }

  /** The next call of `speak`. */
  async spoken(): Promise<HeldCall> {
    for (;;) {
      const call = this.#calls.shift();
      if (call) return call;
      await new Promise<void>((resolve) => {
        this.#called = resolve;
      });
    }
  }

  async close(): Promise<void> {
    const closed = this.server.close();
    await this.clock.advance(10_000);
    await closed;
    this.#done();
  }
}

class Reading implements Streamed {
  text = '';
  readonly ended: Promise<void>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #look: () => void = () => {};

  constructor(reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.#reader = reader;
    this.ended = this.#read();
    // Whoever cancels it does not wait for its end.
    this.ended.catch(() => {});
  }

  until(part: string): Promise<void> {
    const waiting: PendingArrival<void> = wait({ what: `"${part}"`, ms: 20_000, arrived: () => this.text });
    this.#look = () => {
      if (this.text.includes(part)) waiting.settle();
    };
    this.#look();
    return waiting.promise;
  }

  cancel(): void {
    void this.#reader.cancel().catch(() => {});
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      this.text += decoder.decode(value, { stream: true });
      this.#look();
    }
  }
}

function webRequest(base: string, asking: Requested): Request {
  const url = new URL(asking.path ?? '', base);
  const { method, headers, payload } = plain(asking);
  return new Request(url, { method, headers: [...headers], ...(payload === undefined ? {} : { body: payload }) });
}

/** Over a socket, with whatever headers `fetch` itself would not send; the answer as `fetch` gives it. */
function asked(base: string, asking: Requested): Promise<Response> {
  const url = new URL(asking.path ?? '', base).href;
  const { method, headers, payload } = plain(asking);
  const waiting = wait<Response>({ what: `the answer to ${method} ${url}`, ms: 20_000, arrived: () => 'none came' });
  const sent = request(url, { method, agent: false }, (response) => {
    response.on('error', () => {});
    const status = response.statusCode ?? 0;
    const empty = status === 202 || status === 204;
    if (empty) response.resume();
    const all = Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)]);
    waiting.settle(new Response(empty ? null : streamOf(response, () => sent.destroy()), { status, headers: all }));
  });
  for (const [name, value] of headers) sent.setHeader(name, value);
  sent.on('error', (error) => waiting.fail(error));
  sent.end(payload);
  return waiting.promise;
}

function streamOf(response: IncomingMessage, cut: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      response.on('data', (chunk: Buffer) => controller.enqueue(new Uint8Array(chunk)));
      response.on('end', () => controller.close());
    },
    cancel: cut,
  });
}

function plain({ method = 'POST', headers = {}, body }: Asking): {
  method: string;
  headers: readonly [string, string][];
  payload: string | Uint8Array | undefined;
} {
  const payload = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const all: Headers = {
    ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    ...(payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }),
    ...headers,
  };
  const list = Object.entries(all).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return { method, headers: list, payload };
}
