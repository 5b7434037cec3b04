/** The HTTP between an official client and a server in a process of its own: every message, in whatever form it travels. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import { type Message, server, Wire } from './wire.ts';

/** One HTTP request, and how it was answered. */
export interface Exchange {
  readonly method: string;
  readonly headers: Headers;
  /** The message that it brought. */
  readonly asked: Message | undefined;
  readonly status: number;
  /** The media type of the answer. */
  readonly type: string | undefined;
  /** The session that the answer names. */
  readonly session: string | undefined;
}

export class HttpWire extends Wire {
  /** In the order of their answers. */
  readonly exchanges: Exchange[] = [];
  readonly url: URL;
  readonly #served: Served;
  readonly #rewrite: (message: Message) => Message;

  /**
   * The client is to be given `url` and `fetch`.
   *
   * @param rewrite changes what the client sends
   */
  constructor(served: Served, revision: Revision, rewrite: (message: Message) => Message = (message) => message) {
    super(revision);
    this.#served = served;
    this.url = new URL(served.url);
    this.#rewrite = rewrite;
    this.listen(served.child.stdout);
    this.listen(served.child.stderr);
  }

  /** The `fetch` that the client's transport is to use. */
  readonly fetch = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { method = 'GET', body } = init;
    let asked: Message | undefined;
    if (typeof body === 'string') {
      asked = this.#rewrite(JSON.parse(body));
      this.say(asked);
    }
    const response = await fetch(url, { ...init, ...(asked && { body: JSON.stringify(asked) }) });
    const { status, headers } = response;
    const type = headers.get('content-type') ?? undefined;
    const session = headers.get('mcp-session-id') ?? undefined;
    this.exchanges.push({ method, headers: new Headers(init.headers), asked, status, type, session });
    this.tell();
    if (type === 'text/event-stream') return this.#streamed(response);
    const text = await response.text();
    if (type === 'application/json') this.hear(text);
    this.tell();
    return new Response(text === '' ? null : text, response);
  };

  /** Asks the server's process to end, and waits for it. */
  exit(): Promise<unknown> {
    return this.#served.end();
  }

  /** The response as it is, listened in on. */
  #streamed(response: Response): Response {
    const decoder = new TextDecoder();
    let rest = '';
    const tap = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        const events = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
        rest = events.pop() ?? '';
        for (const event of events) this.#event(event);
        this.tell();
        controller.enqueue(chunk);
      },
    });
    return new Response(response.body?.pipeThrough(tap), response);
  }

  #event(event: string): void {
    const lines = event.split('\n');
    const field = (name: string): string | undefined =>
      lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const data = field('data');
    // An event without data primes a client to come back; `endpoint` says where one of 2024-11-05 is to POST to.
    if (data && (field('event') ?? 'message') === 'message') this.hear(data);
  }
}

/** A server in a process of its own. */
export interface Served {
  readonly url: string;
  readonly child: ChildProcess;
  /** Asks the process to end. @returns its code, or the signal that ended it */
  end(): Promise<unknown>;
}

/** The everything server over HTTP. */
export function everything(env?: Record<string, string>): Promise<Served> {
  return serve('examples/everything/http.ts', env);
}

/** Spawns a server on a free port, and resolves when it has said its URL on stderr. It does not outlive this process. */
export async function serve(
  file: string,
  more: Record<string, string> = {},
  options: readonly string[] = [],
): Promise<Served> {
  const { command, args, cwd, env } = server(file, more);
  const child = spawn(command, [...args, '--port', '0', ...options], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  const kill = (): boolean => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString('utf8');
      const found = /http:\S+/.exec(said)?.[0];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code}:\n${said}`)));
  });
  const end = async (): Promise<unknown> => {
    child.kill('SIGTERM');
    const [code, signal] = await ended;
    // Windows has no signals: there it is ended, not asked.
    return process.platform === 'win32' && signal === 'SIGTERM' ? 0 : (code ?? signal);
  };
  return { url, child, end };
}
