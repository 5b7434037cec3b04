/** What the HTTP tests share: a server whose tools the test drives by hand, requests to the letter, and a session. */
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { z } from 'zod';
import { type Context, type HttpOptions, http, type Server, type ServerOptions } from '../../../src/index.ts';
import { type PendingArrival, wait } from '../../../src/testing/arrivals.ts';
import type { SimulatedClock } from '../../../src/testing/testing.ts';
import { timedServer } from '../../harness/memory.ts';
import { HANG_MS } from '../../harness/wait.ts';
import { EventReader, type Message } from './sse.ts';

export type { Message, SseEvent } from './sse.ts';

/** A call of the tool `held`, which the test ends. */
export interface HeldCall {
  readonly ctx: Context;
  /** Answers it with this text. */
  finish(text?: string): void;
}

export interface Stage {
  readonly server: Server;
  /** The server's time. It stands still until the test moves it. */
  readonly clock: SimulatedClock;
  /** The endpoint, such as `http://127.0.0.1:41234/mcp`. */
  readonly url: string;
  /** What the operator was told. */
  readonly told: readonly string[];
  /** Resolves once `held` was called with this key; each call is given once. */
  held(key: string): Promise<HeldCall>;
  /** Sessions that live now. */
  sessions(): number;
  /** Closes the server, and lets its grace time pass. */
  close(): Promise<void>;
}

/**
 * Serves over HTTP on a free port. Its tools:
 * `echo {text}`; `held {key}` runs until the test ends it, see {@link Stage.held}; `count {to}` reports progress `to` times
 * (to a caller with a progress token), then answers; `say {lines}` logs that many messages, then answers; `whoami`. And a
 * resource `notes://a`.
 *
 * @param options those of `http()`, and as `server` those of `createServer`
 * @param define registers more
 * @example
 * const stage = await serveHttp({ keepAliveMs: 1_000, server: { limits: { maxSessions: 2 } } });
 */
export async function serveHttp(
  options: HttpOptions & { readonly server?: Partial<ServerOptions> } = {},
  define: (server: Server) => void = () => {},
): Promise<Stage> {
  const { server: serverOptions, ...httpOptions } = options;
  const {
    server,
    clock,
    logged: told,
  } = timedServer({
    name: 'http',
    ...serverOptions,
  });
  const calls = new Meeting<HeldCall>();
  server.tool('echo', { input: z.object({ text: z.string() }) }, ({ text }) => text);
  server.tool('held', { input: z.object({ key: z.string() }) }, ({ key }, ctx) => {
    return new Promise<string>((finish) => calls.put(key, { ctx, finish: (text = 'done') => finish(text) }));
  });
  server.tool('count', { input: z.object({ to: z.number() }) }, ({ to }, { progress }) => {
    for (let done = 1; done <= to; done += 1) progress(done, to);
    return `counted to ${to}`;
  });
  server.tool('say', { input: z.object({ lines: z.number() }) }, ({ lines }, { log }) => {
    for (let line = 1; line <= lines; line += 1) log.info(`line ${line}`);
    return `said ${lines}`;
  });
  server.tool('whoami', {}, (_args, { principal, client: { revision } }) => `${principal} ${revision}`);
  server.resource('notes://a', {}, () => 'note a');
  define(server);
  const transport = http({ port: 0, ...httpOptions });
  await server.listen(transport);
  return {
    server,
    clock,
    url: transport.url,
    told,
    held: (key) => calls.get(key),
    sessions: () => liveSessions(server),
    async close() {
      const closed = server.close();
      await clock.advance(server.options.limits?.graceMs ?? 3_000);
      await closed;
    },
  };
}

function liveSessions(server: Server): number {
  let count = 0;
  server.inspect((record) => {
    if (record.type === 'created' && record.kind === 'session') count += 1;
  })();
  return count;
}

/** Where a handler and the test that waits for it meet, whoever is first. */
class Meeting<T> {
  readonly #here = new Map<string, T[]>();
  readonly #waiting = new Map<string, PendingArrival<T>[]>();

  put(key: string, value: T): void {
    const first = this.#waiting.get(key)?.shift();
    if (first) first.settle(value);
    else this.#here.set(key, [...(this.#here.get(key) ?? []), value]);
  }

  get(key: string): Promise<T> {
    const waiting = wait<T>({ what: `a call with the key "${key}"`, ms: HANG_MS, arrived: () => 'none came' });
    const here = this.#here.get(key)?.shift();
    if (here) waiting.settle(here);
    else this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), waiting]);
    return waiting.promise;
  }
}

/** Headers by name: several values are several lines; `undefined` leaves out what would have been sent. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Asking {
  /** Default: POST. */
  readonly method?: string;
  readonly headers?: Headers;
  /** A string or bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  /** Default: one that keeps connections for the next request. */
  readonly agent?: Agent | false;
  /** Drops the connection, whatever has come so far. */
  readonly signal?: AbortSignal;
}

/** A response whose head has come; its body is read by one of `text`, `json` and `events`. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Where the connection was made from. */
  readonly localPort: number | undefined;
  text(): Promise<string>;
  json(): Promise<Message>;
  readonly events: EventReader;
  /** Drops the connection. */
  cut(): void;
}

const shared = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/**
 * Sends one request, with these headers and what HTTP itself needs. A POST says `content-type: application/json`, and every
 * request an `accept` that fits its method, unless `headers` says otherwise.
 *
 * @throws {Error} when the connection fails before the response's head has come, or none comes in time
 * @example const answer = await ask(stage.url, { body: { jsonrpc: '2.0', id: 1, method: 'ping' } });
 */
export function ask(
  url: string,
  { method = 'POST', headers = {}, body, agent = shared, signal }: Asking = {},
): Promise<Answer> {
  const payload = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const all: Headers = {
    ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    ...(payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }),
    ...headers,
  };
  const waiting = wait<Answer>({ what: `the answer to ${method} ${url}`, ms: HANG_MS, arrived: () => 'none came' });
  const sent = request(url, { method, agent, ...(signal && { signal }) }, (response) =>
    waiting.settle(answerOf(response, () => sent.destroy())),
  );
  for (const [name, value] of Object.entries(all)) if (value !== undefined) sent.setHeader(name, value);
  sent.on('error', (error) => waiting.fail(error));
  sent.end(payload);
  return waiting.promise;
}

function answerOf(response: IncomingMessage, cut: () => void): Answer {
  let events: EventReader | undefined;
  // A body that nobody reads may be cut off.
  response.on('error', () => {});
  const text = (): Promise<string> => textOf(response);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    localPort: response.socket.localPort,
    text,
    json: async () => JSON.parse(await text()),
    get events() {
      events ??= new EventReader(response);
      return events;
    },
    cut,
  };
}

/** A legacy client's session. */
export interface Session {
  readonly id: string;
  readonly revision: string;
  /** Its headers: the session's id and the revision. */
  readonly headers: Headers;
  /** Sends a message (or a batch) in it. */
  post(body: unknown, headers?: Headers): Promise<Answer>;
  /** Calls a tool; an object as `_meta` may name a progress token. */
  call(id: string | number, name: string, args?: object, meta?: object, signal?: AbortSignal): Promise<Answer>;
  /** Opens its own stream, or with a `last-event-id` goes on with one. */
  get(headers?: Headers): Promise<Answer>;
  delete(headers?: Headers): Promise<Answer>;
}

export function initialize(revision: string, id: string | number = 0, capabilities: object = {}): object {
  const clientInfo = { name: 'test', version: '1.0.0' };
  return {
    jsonrpc: '2.0',
    id,
    method: 'initialize',
    params: { protocolVersion: revision, capabilities, clientInfo },
  };
}

/** Opens a session, and says `notifications/initialized`. @throws {Error} when it is refused */
export async function openSession(
  url: string,
  revision = '2025-11-25',
  more: Headers = {},
  capabilities: object = {},
): Promise<Session> {
  const opened = await ask(url, { body: initialize(revision, 0, capabilities), headers: more });
  const body = await opened.text();
  const id = opened.headers['mcp-session-id'];
  if (opened.status !== 200 || typeof id !== 'string') throw new Error(`initialize got ${opened.status}: ${body}`);
  const headers: Headers = { ...more, 'mcp-session-id': id, 'mcp-protocol-version': revision };
  const send = (method: string, body: unknown, extra: Headers = {}): Promise<Answer> =>
    ask(url, { method, headers: { ...headers, ...extra }, body });
  const session: Session = {
    id,
    revision,
    headers,
    post: (body, extra) => send('POST', body, extra),
    call(id, name, args = {}, _meta, signal) {
      const params = { name, arguments: args, ...(_meta && { _meta }) };
      return ask(url, {
        headers,
        body: { jsonrpc: '2.0', id, method: 'tools/call', params },
        ...(signal && { signal }),
      });
    },
    get: (extra) => send('GET', undefined, extra),
    delete: (extra) => send('DELETE', undefined, extra),
  };
  const ready = await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  await ready.text();
  if (ready.status !== 202) throw new Error(`notifications/initialized got ${ready.status}, expected 202`);
  return session;
}

/** The text of a tool's result. @throws {Error} for a message that is no such result */
export function textIn(message: Message): string {
  const content = message.result?.content;
  const first: unknown = Array.isArray(content) ? content[0] : undefined;
  if (typeof first === 'object' && first !== null && 'text' in first && typeof first.text === 'string')
    return first.text;
  throw new Error(`expected a result with a text, got ${JSON.stringify(message)}`);
}
